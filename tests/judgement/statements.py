"""Splits what servetop says about a run into statements, by its text alone: headline, story, advice, verdict line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.judgement.sentences import PATTERNS

_COMPILED = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}
_BETWEEN = re.compile(r"(?:, |; |: |$)")


class UnknownStatementError(Exception):
    """A sentence that no pattern knows: it would not be scored."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that servetop says."""

    name: str
    """A key of `PATTERNS`."""
    text: str
    values: Mapping[str, str | None]
    at: float | None = None
    """The time of the story's line, or of the verdict line; None for the whole run."""
    live: bool = False
    """Whether it stood on the verdict line while the run went on."""
    page_age: float = 0.0
    """Seconds by which what is known of the engine may be old."""

    def number(self, name: str) -> float:
        """A number in the text, in its unit: seconds, percent, requests; NaN if it is not there."""
        return number_of(self.values.get(name))

    @property
    def said_at(self) -> float | None:
        """The time in the text, else that of the line."""
        return seconds_of(self.values["at"]) if self.values.get("at") else self.at


def statements_of(text: str, *, at: float | None = None, live: bool = False, page_age: float = 0.0) -> list[Statement]:
    """Split a line into its statements; UnknownStatementError if a part of it matches no pattern."""
    found: list[Statement] = []
    position = 0
    while position < len(text):
        match, name = max(_matches(text, position), key=lambda each: each[0].end(), default=(None, ""))
        if match is None:
            raise UnknownStatementError(f"{text[position:]!r} of {text!r}")
        found.append(Statement(name, match.group(), match.groupdict(), at=at, live=live, page_age=page_age))
        separator = _BETWEEN.match(text, match.end())
        position = match.end() if separator is None else separator.end()
    return found


def _matches(text: str, position: int) -> list[tuple[re.Match[str], str]]:
    """The patterns that match here up to a separator or the end."""
    matches = ((pattern.match(text, position), name) for name, pattern in _COMPILED.items())
    return [(match, name) for match, name in matches if match is not None and _BETWEEN.match(text, match.end())]


_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def number_of(text: str | None) -> float:
    """Read `1,024`, `0.5` or `34 ms` (in seconds); NaN for None."""
    if text is None:
        return math.nan
    value, _, unit = text.replace(",", "").partition(" ")
    return float(value) * _UNITS.get(unit, 1.0)


def seconds_of(clock: str | None) -> float:
    """Read `1:05` or `1:00:00` as seconds; NaN for None."""
    if clock is None:
        return math.nan
    total = 0.0
    for part in clock.split(":"):
        total = 60 * total + float(part)
    return total
