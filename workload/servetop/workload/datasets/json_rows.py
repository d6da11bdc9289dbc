"""JSON files of datasets: an array, JSON lines, or objects one after the other."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

from servetop.core.errors import UsageError
from servetop.workload.datasets.files import lines_of
from servetop.workload.datasets.nested_rows import rows_within
from servetop.workload.datasets.rows import BadRow, MalformedRow
from servetop.workload.datasets.text_file import opened

_READ_CHARS = 1 << 20
_MAX_ITEM_CHARS = 64 << 20
_GAP = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


def json_rows(path: Path) -> Iterator[tuple[int, object | BadRow]]:
    """The rows of a JSON array, of JSON lines, of objects over several lines, or of a list within the only object."""
    with opened(path) as file:
        start = next((stripped for line in file if (stripped := line.strip())), "")
    if start.startswith("{") and (within := rows_within(path, _only_value(path))) is not None:
        return enumerate(within, 1)
    spread = start.startswith("{") and start.endswith(("{", "[", ",", ":"))
    return array_items(path) if spread or start.startswith("[") else json_lines(path)


def _only_value(path: Path) -> object:
    """Return the only JSON value of a file; None if there are several, or if the file cannot be read to its end."""
    try:
        values = [value for _, value in itertools.islice(array_items(path), 2)]
    except UsageError:
        return None
    return values[0] if len(values) == 1 else None


def json_lines(path: Path) -> Iterator[tuple[int, object | BadRow]]:
    """Yield the JSON value of each line; a line that is not JSON is a BadRow."""
    for line, text in lines_of(path):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            yield line, _not_json(text)
        else:
            yield line, found


def array_items(path: Path) -> Iterator[tuple[int, object | BadRow]]:
    """Yield the items of a JSON array, decoded one by one; the file may be larger than memory.

    Objects one after the other are read as well. The last item is a BadRow for a file that is truncated.
    """
    with opened(path) as file:
        buffer, at, line, exhausted, in_array = "", 0, 1, False, False
        while True:
            start, in_array = _between_items(buffer, at, in_array=in_array)
            line += buffer.count("\n", at, start)
            found = _decoded(buffer, start)
            if found is not None:
                yield line, found[0]
                at = found[1]
                line += buffer.count("\n", start, at)
            elif exhausted or len(buffer) - start > _MAX_ITEM_CHARS:
                break
            else:
                piece = file.read(max(_READ_CHARS, len(buffer) - start))
                buffer, at, exhausted = buffer[start:] + piece, 0, not piece
        if start < len(buffer):
            yield line, _not_json(buffer[start : start + _READ_CHARS])
        elif in_array:
            yield line, MalformedRow("the file ends within a JSON array")


def _not_json(text: str) -> BadRow:
    shown = repr(text if len(text) <= 40 else f"{text[:39]}…")
    return MalformedRow(f"not a complete JSON value: {shown}")


def _between_items(buffer: str, at: int, *, in_array: bool) -> tuple[int, bool]:
    """Position of the next item, and whether it is in an array; brackets within an array belong to its items."""
    while True:
        gap = _GAP.match(buffer, at)
        at = at if gap is None else gap.end()
        if not buffer.startswith("]" if in_array else "[", at):
            return at, in_array
        at, in_array = at + 1, not in_array


def _decoded(buffer: str, start: int) -> tuple[object, int] | None:
    """Return the item at `start` and its end; None when the buffer holds only a part of it."""
    try:
        return _DECODER.raw_decode(buffer, start) if start < len(buffer) else None
    except (ValueError, RecursionError):
        return None
