"""The modules of servetop as the structure tests see them: paths, names, imports."""

from __future__ import annotations

import ast
import functools
import gc
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).parents[2]
ROOMS = (
    "cli", "run", "reports", "tui", "loadgen", "recordings", "simulator", "engines", "workload", "analysis", "core",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One module of the product."""

    name: str
    """Dotted, such as `servetop.core.clock`."""
    path: Path
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The root folder that holds it."""
        return self.path.relative_to(TOP).parts[0]

    @property
    def lines(self) -> int:
        """Lines of the file, blank ones included."""
        return self.text.count("\n")

    @property
    def is_package(self) -> bool:
        """Whether the file is an `__init__.py`."""
        return self.path.name == "__init__.py"


@functools.cache
def modules() -> tuple[Module, ...]:
    """Every module below the root folders, in order of their paths."""
    found = (path for room in ROOMS for path in sorted((TOP / room).rglob("*.py")))
    gc.disable()  # Python 3.11 fails to parse if a collection runs other code meanwhile ("recursion depth mismatch")
    try:
        return tuple(_module(path) for path in found)
    finally:
        gc.enable()


def _module(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(TOP).with_suffix("").parts[1:]
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name=name, path=path, text=text, tree=ast.parse(text))


def imports_of(module: Module, known: frozenset[str]) -> set[str]:
    """The modules of servetop that a module imports anywhere, except for type checking alone."""
    found: set[str] = set()
    for node in _run_time_nodes(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & known - {module.name}


def _run_time_nodes(node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        found += [child, *_run_time_nodes(child)]
    return found
