"""The names of environment variables in the source of servetop."""

from __future__ import annotations

import ast
import functools
import re

from tests.house.source_tree import Module, modules

_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)*_?|[a-z]+_proxy")
"""Names of variables, and prefixes of names, which end with an underscore."""
_READS = re.compile(r"\benviron")


@functools.cache
def variable_names() -> tuple[str, ...]:
    """Return every string of the product that may be the name of a variable, or a prefix of names.

    Where a module mentions no environment, only strings with an underscore: a constant may be imported from it.
    """
    return tuple(sorted({name for module in modules() for name in _names(module)}))


def _names(module: Module) -> set[str]:
    reads = _READS.search(module.text) is not None
    strings = {
        node.value for node in ast.walk(module.tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {text for text in strings if _NAME.fullmatch(text) and (reads or "_" in text)}
