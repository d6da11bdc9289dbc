"""Rows of named columns as CSV and as JSON Lines, in blocks of text."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from servetop.reports.export.exported_columns import ExportedColumn

_BLOCK = 500
"""Rows of one block of text."""
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_QUOTED = frozenset('",\r\n')


def csv_text(columns: Sequence[ExportedColumn], rows: Iterable[Any]) -> Iterator[str]:
    """Yield CSV by RFC 4180 with a line of names, its lines ended by a newline alone.

    An unknown value is an empty cell, an empty text is `""`. Texts are not altered, so a spreadsheet may take one that
    starts with `=` for a formula.
    """
    yield ",".join(each.name for each in columns) + "\n"
    yield from _blocks(rows, lambda row: ",".join(_cell(each.value(row)) for each in columns) + "\n")


def json_lines(columns: Sequence[ExportedColumn], rows: Iterable[Any]) -> Iterator[str]:
    """Yield one JSON object for each row, in printable ASCII; an unknown value is null, infinity is "inf"."""
    return _blocks(rows, lambda row: json_line({each.name: each.value(row) for each in columns}))


def json_line(value: object) -> str:
    """Return a value as one line of JSON without an escape sequence or a command to a CI runner in it."""
    try:
        text = _ENCODER.encode(value)
    except ValueError:  # a value that is not finite, which few have
        text = _ENCODER.encode(plain(value))
    return text.replace("##", "#\\u0023") + "\n"


def json_object(members: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Yield one JSON object as `json_line` writes it; an iterator is a list whose values are computed while written."""
    lead = "{"
    for name, value in members:
        if isinstance(value, Iterator):
            yield f"{lead}{json.dumps(name)}:["
            for number, block in enumerate(_blocks(value, lambda each: "," + json_line(each).removesuffix("\n"))):
                yield block if number else block[1:]
            yield "]"
        else:
            yield f"{lead}{json.dumps(name)}:{json_line(value)[:-1]}"
        lead = ","
    yield "}\n"


def plain(value: Any) -> Any:
    """Return a value with infinity as "inf" and NaN as None, which JSON has not."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def _blocks(rows: Iterable[Any], line: Callable[[Any], str]) -> Iterator[str]:
    remaining = iter(rows)
    while block := [line(row) for row in itertools.islice(remaining, _BLOCK)]:
        yield "".join(block)


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float.__repr__(value)
    if not isinstance(value, str):
        return str(value)
    if value and _QUOTED.isdisjoint(value) and value == value.strip():
        return str(value)
    return '"' + value.replace('"', '""') + '"'
