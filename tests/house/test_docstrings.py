"""Every public method has a docstring, unless it overrides one or implements a protocol."""

from __future__ import annotations

import ast
import importlib
import inspect

from tests.house.source_tree import Module, modules

PROGRAMS = "servetop.engines.adapters.servers"
"""Run by the Python of an engine, which has packages that servetop does not need."""


def test_every_public_method_that_overrides_nothing_has_a_docstring() -> None:
    declared = _declared()
    assert [place for module in modules() for place in _without(module, declared)] == []


def _declared() -> set[str]:
    """Names of methods that protocols and abstract base classes of servetop declare."""
    found: set[str] = set()
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and {_last_name(base) for base in node.bases} & {"Protocol", "ABC"}:
                found |= {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return found


def _last_name(base: ast.expr) -> str:
    node = base.value if isinstance(base, ast.Subscript) else base
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _without(module: Module, declared: set[str]) -> list[str]:
    found = []
    for node in module.tree.body:
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        inherited = _inherited(module, node.name)
        for each in node.body:
            if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) or ast.get_docstring(each) is not None:
                continue
            if not each.name.startswith("_") and not _is_called_by_name(each) and each.name not in inherited | declared:
                found.append(f"{module.path}:{each.lineno} {node.name}.{each.name}")
    return found


def _is_called_by_name(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether Textual calls the method by its name, or its property has the docstring."""
    handlers = ("on_", "watch_", "key_", "compute_", "validate_")
    decorators = {ast.unparse(each) for each in method.decorator_list}
    return method.name.startswith(handlers) or any(each.endswith((".setter", "overload")) for each in decorators)


def _inherited(module: Module, class_name: str) -> set[str]:
    if module.name.startswith(PROGRAMS):
        return set()
    kind = getattr(importlib.import_module(module.name), class_name)
    return {name for base in inspect.getmro(kind)[1:] for name in vars(base)}
