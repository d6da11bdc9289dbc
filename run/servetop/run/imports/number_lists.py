"""Numbers and lists from a file of another tool, checked: finite, not negative, as many as there are requests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from servetop.core.errors import UsageError
from servetop.run.imports.imported_result import MAX_SECONDS

MAX_TOKENS = 2**31 - 1
"""Most tokens of a request; a larger count is damaged."""


def lists_of(document: Mapping[str, Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the lists that a result has under these names, one value per request; UsageError if they differ."""
    lists = {name: document[name] for name in names if document.get(name) is not None}
    for name, values in lists.items():
        if not isinstance(values, list):
            raise UsageError(f"{name} is not a list: is the file damaged?")
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise UsageError(f"its lists are of different lengths ({text}): is the file damaged?")
    return lists


def seconds_in(values: Sequence[Any], name: str, *, most: float = MAX_SECONDS) -> list[float]:
    """Return times in seconds; UsageError for the first one that is negative, not a number, or above `most`."""
    return [time_in(value, f"{name} of request {number}", most=most) for number, value in enumerate(values, start=1)]


def counts_in(values: Sequence[Any], name: str) -> list[int]:
    """Return numbers of tokens; UsageError for the first one that is no whole number of at least 0."""
    return [count_in(value, f"{name} of request {number}") for number, value in enumerate(values, start=1)]


def time_in(value: Any, what: str, *, most: float = MAX_SECONDS) -> float:
    """Return a time; UsageError for one that is negative, not a number, or above `most`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise UsageError(f"{what} is {_shown(value)}: a time from 0 on is needed")
    return float(value)


def count_in(value: Any, what: str) -> int:
    """Return a number of tokens, also one written as 12.0; UsageError for no whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TOKENS or value % 1:
        raise UsageError(f"{what} is {_shown(value)}: a number of tokens is needed")
    return int(value)


def positive_number(value: Any, name: str) -> float:
    """Return a number above 0, infinity too, also if written as text; UsageError for anything else."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not number > 0:
        raise UsageError(f"{name} is {_shown(value)}: a number above 0 is needed")
    return number


def _shown(value: Any) -> str:
    return str(value)[:40] if isinstance(value, int | float) else type(value).__name__
