"""Only one module composes command lines of this Python, so that none executes files of the working directory."""

from __future__ import annotations

import ast

from tests.house.source_tree import Module, modules

HOME = "servetop.core.system.own_python"


def _composed(tree: ast.Module) -> list[int]:
    """The lines that use `sys.executable` for anything but a path, or import it."""
    paths = {
        id(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Path" and len(node.args) == 1
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("executable", "_base_executable")
            and id(node) not in paths
        )
        or (isinstance(node, ast.ImportFrom) and node.module == "sys")
        or (isinstance(node, ast.Import | ast.ImportFrom) and _starts_pythons(node))
    ]


def _starts_pythons(node: ast.Import | ast.ImportFrom) -> bool:
    names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
    return any(name.partition(".")[0] == "multiprocessing" or name == "ProcessPoolExecutor" for name in names)


def _found(module: Module) -> list[str]:
    return [f"{module.path}:{line}" for line in _composed(module.tree)]


def test_no_other_module_starts_this_python() -> None:
    found = [each for module in modules() if module.name != HOME for each in _found(module)]
    assert found == [], f"compose it with {HOME}.python_argv"


def test_each_way_to_start_this_python_is_found() -> None:
    for line in (
        'argv = [sys.executable, "-m", "x"]',
        "argv = [*words, str(sys.executable)]",
        "from sys import executable",
        "import multiprocessing.pool",
        "from multiprocessing import Pool",
        "from concurrent.futures import ProcessPoolExecutor",
    ):
        assert _composed(ast.parse(line)) == [1]
    assert _composed(ast.parse('beside = Path(sys.executable).with_name("vllm")')) == []
