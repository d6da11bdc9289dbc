"""Reads all requests of a recording as blocks of columns, which are checked as arrays and not row by row."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from servetop.analysis.columns.request_columns import RequestColumns
from servetop.core.arrays import BoolArray
from servetop.core.errors import RecordingError
from servetop.recordings.format.column_bounds import largest_request_value, valid_request_condition
from servetop.recordings.read.equal_values import equal_request_values
from servetop.recordings.read.load_requests import ALWAYS, EXPRESSIONS, TYPES, without_times
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.table_reader import collector_paused

BLOCK = 16_384
"""Most requests of a block."""
_VALID_CHUNKS = "valid_chunks"
_CHUNKS_ARE_VALID = valid_request_condition(("chunk_times", "chunk_tokens"))
_EXPRESSIONS = {**EXPRESSIONS, _VALID_CHUNKS: f"CASE WHEN {_CHUNKS_ARE_VALID} THEN 1 ELSE 0 END"}
"""SQLite evaluates only as much of a condition as it needs after WHEN, but all of one that is a column."""
_TYPES = {**TYPES, _VALID_CHUNKS: "i1"}
_DIFFERENT = frozenset({"due", "sent", "first_token_at", "done_at", "headers_at", "id"})
"""Columns that are never the same in all rows of a long recording."""
_INTEGERS = frozenset({"id", "prompt_tokens", "output_tokens", "status", _VALID_CHUNKS})
"""Columns that are integers in a valid row; `due` is a number, all others may be NULL."""

_Checked = tuple[npt.NDArray[Any], BoolArray]
"""The values of a column, and whether each is valid: shape (values,), or (1,) if all are, or none is."""


def ended_request_blocks(reader: RecordingReader, others: Sequence[str]) -> Iterator[RequestColumns]:
    """Yield an empty block, then all requests in the order in which they were written, without the times of chunks.

    `others` are optional columns. Columns with one value in all rows, which many recordings have, are not read row by
    row. Invalid requests are omitted, and recorded as damage; RecordingError if one cannot be read.
    """
    names = tuple(dict.fromkeys((*ALWAYS, *others, "chunks", _VALID_CHUNKS)))
    equal = _equal_values(reader, names)
    read = [name for name in names if name not in equal]
    one = {name: _checked(name, (value,)) for name, value in equal.items()}
    rows = reader.tables.rows("request", reader.tables.or_null("request", [_expression(name) for name in read]))
    yield _measured(dict.fromkeys(read, ()), one, size=0)[0]
    omitted = 0
    while block := _next_block(rows):
        size = len(block[0])
        try:
            columns, invalid = _measured(dict(zip(read, block, strict=True)), one, size=size)
        except (ValueError, TypeError) as error:
            raise RecordingError(f"{reader.path} is damaged: its request rows are invalid ({error})") from error
        omitted += invalid
        yield columns
    if omitted:
        reader.check_requests()


def _next_block(rows: Iterator[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the columns of the next rows; empty after the last one."""
    with collector_paused():
        return list(zip(*itertools.islice(rows, BLOCK), strict=True))


def _expression(name: str) -> str:
    return _EXPRESSIONS.get(name, name)


def _equal_values(reader: RecordingReader, names: Sequence[str]) -> dict[str, Any]:
    """Return the columns that have one value in all rows; none of a growing recording, whose next row may differ."""
    if reader.end is None:
        return {}
    names = [name for name in names if name not in _DIFFERENT]
    found = equal_request_values(reader.tables, [_expression(name) for name in names])
    return {name: found[_expression(name)] for name in names if _expression(name) in found}


def _measured(
    read: Mapping[str, Sequence[Any]], one: Mapping[str, _Checked], *, size: int
) -> tuple[RequestColumns, int]:
    """Return the valid requests of a block of `size` rows, and the number of the others; `one` has equal columns."""
    columns, valid = {}, np.ones(size, dtype=bool)
    checked = {name: _checked(name, values) for name, values in read.items()}
    for name, (values, right) in (*checked.items(), *one.items()):
        columns[name] = np.broadcast_to(values, (size,))
        valid &= right
    if not valid.all():
        columns = {name: array[valid] for name, array in columns.items()}
    return without_times(columns), int(size - valid.sum())


def _checked(name: str, values: Sequence[Any]) -> _Checked:
    """Return a column as an array, in which an unknown number is NaN, and which of its values are valid."""
    dtype = np.dtype(_TYPES[name])
    if dtype.kind not in "fi":
        return np.array(values, dtype=dtype), np.ones(1, dtype=bool)
    exact = np.dtype(np.int64 if name in _INTEGERS else np.float64)
    numbers, right = np.asarray(values), np.ones(1, dtype=bool)
    if numbers.dtype.kind not in ("i" if name in _INTEGERS else "if"):  # not all values are numbers of one type
        types = {int} if name in _INTEGERS else {int, float} if name == "due" else {int, float, type(None)}
        if not types.issuperset(map(type, values)):
            right = np.array([type(each) in types for each in values])
            values = [each if known else 0 for each, known in zip(values, right, strict=True)]
        numbers = np.array(values, dtype=exact)
    numbers = numbers.astype(exact, copy=False)
    largest = largest_request_value(name)
    right = right & ~((numbers > largest) | (numbers < -largest))
    numbers[~right] = 0  # others may not fit into a narrower type
    return numbers.astype(dtype), right & (numbers == 1) if name == _VALID_CHUNKS else right
