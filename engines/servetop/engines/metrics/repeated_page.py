"""Reads the same rows from page after page of a server, without parsing their names and labels again.

The pages of a server differ in their values, and seldom in anything else. So the text before each value is compared
with that of an earlier page, and only the values are parsed; a page that differs in anything else has other rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Self

from servetop.engines.metrics.prometheus_text import (
    MAX_LINE_CHARS,
    PrometheusSample,
    has_plain_blanks,
    page_lines,
    parse_row,
)

_LARGEST_PAGE = 1 << 22
"""Characters of a page that is kept to be compared with; a page of vLLM has 60,000."""
_LONGEST_VALUE = 64
"""Characters after the labels of a row that can be repeated; a value and a time stamp have up to 40."""


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedPage:
    """The requested rows of a page, and how later pages with the same rows are recognised."""

    rows: tuple[tuple[str, PrometheusSample], ...]
    """Name and sample of each row, in page order."""
    _starts: tuple[str, ...] | None
    """How each line begins: a requested row up to its value, others up to their last blank; None: not repeated."""
    _whole: tuple[int, ...]
    """Lines without a blank, which are compared as they are."""
    _values: tuple[tuple[int, int], ...]
    """Line of each row, and where its value begins."""

    @classmethod
    def of(cls, page: str, wanted: Container[str]) -> Self:
        """Read a page: the rows of these series, as `scan` finds them."""
        lines, rows, values = page_lines(page), list[tuple[str, PrometheusSample]](), list[tuple[int, int]]()
        repeated = len(page) <= _LARGEST_PAGE and has_plain_blanks(page)
        for number, line in enumerate(lines):
            name = line.partition("{")[0].partition(" ")[0]
            if name not in wanted:
                continue
            row = parse_row(line, name)
            if row is None:
                repeated = False
                continue
            start = len(name) + (len(row.labels_text) + 2 if line[len(name)] == "{" else 1)
            if start > MAX_LINE_CHARS - _LONGEST_VALUE or line[start:].lstrip().startswith("{"):
                repeated = False
            rows.append((name, row))
            values.append((number, start))
        if not repeated:
            return cls(tuple(rows), None, (), ())
        starts = [line[: line.rfind(" ") + 1] or line for line in lines]
        for number, start in values:
            starts[number] = lines[number][:start]
        whole = tuple(number for number, line in enumerate(lines) if starts[number] == line)
        return cls(tuple(rows), tuple(starts), whole, tuple(values))

    def values(self, page: str) -> list[float] | None:
        """Return the values of another page in the order of the rows; None if that page may have other rows."""
        lines, starts = page.split("\n"), self._starts
        if starts is None or len(lines) != len(starts) or not all(map(str.startswith, lines, starts)):
            return None
        if any(lines[number] != starts[number] for number in self._whole):
            return None
        return _numbers([lines[number][start:] for number, start in self._values])


def _numbers(texts: Sequence[str]) -> list[float] | None:
    """Return the number that each text begins with; None if one has none."""
    if "_" not in "".join(texts) and max(map(len, texts), default=0) <= _LONGEST_VALUE:
        with contextlib.suppress(ValueError):  # a time stamp follows
            return list(map(float, texts))
    try:
        return [_number(text) for text in texts]
    except (ValueError, IndexError):
        return None


def _number(text: str) -> float:
    """Return the number that a text begins with; ValueError or IndexError without one."""
    if len(text) > _LONGEST_VALUE:
        raise ValueError(text)
    if "_" not in text:
        try:
            return float(text)
        except ValueError:  # a time stamp follows
            pass
    number = text.split(maxsplit=1)[0]
    if "_" in number:
        raise ValueError(text)
    return float(number)
