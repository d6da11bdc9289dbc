"""Builds a dataclass from the fields of others that have the same names."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

_Class = TypeVar("_Class")


def from_same_fields(kind: type[_Class], *sources: Any, **others: Any) -> _Class:
    """Return a `kind` with the values that `sources` have under its fields' names, and `others`.

    `others` replace values of the sources, and a source those of the sources before it. Fields that `kind` does not
    have are left out; TypeError for a field without a value. mypy does not see the types of these values:
    tests/core/test_same_fields.py compares them for each use.
    """
    target: Any = kind  # the type of dataclasses is not public
    names = {each.name for each in dataclasses.fields(target)}
    values = {each.name: getattr(source, each.name) for source in sources for each in dataclasses.fields(source)}
    return kind(**{name: value for name, value in values.items() if name in names} | others)
