"""Lists and ranges of a sweep file: `[1, 2, 4]`, `"2:32:x2"`, `{ from = 2, to = 32, steps = 5 }`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from servetop.core.errors import UsageError

MOST_VALUES = 10_000
"""Values of one range."""
_LARGEST = 1e15
"""Largest number of a range."""
_NUMBER = r"(\d+(?:\.\d+)?)"
_TEXT = re.compile(rf"{_NUMBER}:{_NUMBER}:(x?){_NUMBER}")
_FORMS = 'write a list, "2:32:x2", "2:32:10" or { from = 2, to = 32, steps = 4 }'
_KEYS = ("from", "to", "step", "steps", "factor")


def values_of(value: Any, *, where: str) -> Sequence[Any]:
    """Return the values of a list, of a range, or the one value; UsageError for an empty list or a bad range."""
    if isinstance(value, list):
        if not value:
            raise UsageError(f"{where}: an empty list leaves no cell: {_FORMS}")
        return value
    if isinstance(value, Mapping) and is_range(value):
        return _of_table(value, where)
    found = _TEXT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return [value]
    first, last, by = (float(found[group]) for group in (1, 2, 4))
    return _multiples(first, last, by, where) if found[3] else _steps(first, last, by, where)


def is_range(value: Mapping[str, Any]) -> bool:
    """Whether a table is a range, and not the one value of an option that takes a table."""
    return "from" in value and "to" in value


def _of_table(table: Mapping[str, Any], where: str) -> Sequence[float]:
    how = [key for key in ("step", "steps", "factor") if key in table]
    numbers = {key: value for key, value in table.items() if _is_number(value)}
    if set(table) - set(_KEYS) or len(how) != 1 or len(numbers) != len(table):
        raise UsageError(f"{where} = {dict(table)}: give from, to, and one of step, steps (how many values) or factor")
    first, last, by = numbers["from"], numbers["to"], numbers[how[0]]
    if how[0] == "factor":
        return _multiples(first, last, by, where)
    if how[0] == "step":
        return _steps(first, last, by, where)
    if by != int(by) or not 2 <= by <= MOST_VALUES:
        raise UsageError(f"{where}: steps = {by:g}: give the number of values, at least 2")
    count = int(by)
    return [_whole(first + (last - first) * place / (count - 1)) for place in range(count)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _steps(first: float, last: float, by: float, where: str) -> Sequence[float]:
    """Return first, first + by, ... up to last."""
    if not by > 0 or last < first or (last - first) / by >= MOST_VALUES:
        raise UsageError(f"{where}: cannot count from {first:g} to {last:g} by {by:g}: {_FORMS}")
    count = math.floor((last - first) / by + 1e-9)
    return [_whole(first + by * place) for place in range(count + 1)]


def _multiples(first: float, last: float, by: float, where: str) -> Sequence[float]:
    """Return first, first x by, ... up to last."""
    if not by > 1 or not 0 < first <= last <= _LARGEST:
        raise UsageError(f"{where}: cannot multiply {first:g} by {by:g} up to {last:g}: {_FORMS}")
    count = math.floor(math.log(last / first) / math.log(by) + 1e-9)
    if count >= MOST_VALUES:
        raise UsageError(f"{where}: more than {MOST_VALUES:,} values: use a larger factor")
    return [_whole(first * by**place) for place in range(count + 1)]


def _whole(value: float) -> float:
    """Return a number without the error of its computation, as an int where it is one."""
    rounded = float(f"{value:.12g}")
    return int(rounded) if rounded.is_integer() else rounded
