"""Reads the request rows without decoding the times of their chunks, which a comparison does not need."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from servetop.analysis.columns.request_columns import (
    STATUSES,
    TOKEN_SOURCES,
    UNKNOWN_SOURCE,
    RequestColumns,
    narrowed,
)
from servetop.analysis.confounding.measure import RequestTable
from servetop.analysis.statistics.percentiles import Distribution
from servetop.core.arrays import FloatArray, IntArray
from servetop.core.chunk_codec import chunk_sizes_known
from servetop.core.events import RequestStatus, TokenSource
from servetop.recordings.read.growing_column import GrowingColumn
from servetop.recordings.read.reader import RecordingReader

_BLOCK = 20_000
_TIMES = ("due", "sent", "first_token_at", "done_at")
_NARROW = ("first_output_at", "prompt_tokens", "output_tokens", "reasoning_tokens", "required_tokens")
_CODED = " ".join(f"WHEN '{status}' THEN {code}" for code, status in enumerate(STATUSES))
_SOURCE = "token_source"
_EXPRESSIONS = {"status": f"CASE status {_CODED} END", "chunks": "ifnull(length(chunk_times) / 4, 0)"}
_TYPES: Any = [
    *((name, "f8") for name in (*_TIMES, *_NARROW)),
    *((name, "f4") for name in ("stage", "replica", "chunks")),
    *((name, "i8") for name in ("seq", "id")),
    ("status", "i1"),
    (_SOURCE, "U1"),
]
"""The first letter of a source of token counts is enough."""
_COLUMNS = [_EXPRESSIONS.get(name, name) for name, _ in _TYPES]
_STATUSES = ", ".join(f"'{each}'" for each in STATUSES)
_VALID = f"due IS NOT NULL AND typeof(id) = 'integer' AND status IN ({_STATUSES})"
_DISPUTED = TOKEN_SOURCES.index(TokenSource.DISPUTED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainRequests:
    """All requests by stage, and those of a stage by due time and id; arrays of shape (requests,), NaN is unknown."""

    columns: RequestColumns
    """Without token gaps and without the tokens of each second."""
    stages: FloatArray
    ids: IntArray
    replicas: FloatArray

    def of_stage(self, index: int) -> slice:
        """Return the places of the requests of one stage."""
        return slice(*(int(np.searchsorted(self.stages, index, side=side)) for side in _SIDES))

    def lengths(self) -> RequestTable:
        """Return the requests as the conditions of a run need them."""
        columns = self.columns
        return RequestTable(
            ids=self.ids,
            stages=self.stages,
            prompt=_single(columns.prompt_tokens),
            output=_single(columns.output_tokens),
            ok=columns.with_status(RequestStatus.OK),
            cancelled=columns.with_status(RequestStatus.CANCELLED),
            replicas=self.replicas,
        )


_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


def load_plain_requests(reader: RecordingReader) -> PlainRequests:
    """Read all requests with a valid status; takes about 80 bytes per request."""
    table = _read(reader)
    first, counted = _chunk_counts(reader, table.pop("seq"), table.pop("chunks"))
    sized = chunk_sizes_known(table["output_tokens"], counted) | (table[_SOURCE] == _DISPUTED)
    del counted
    table |= {"first_tokens": first, "sized": sized}
    order = np.lexsort((table["id"], table["due"], table["stage"]))
    for name, values in table.items():
        table[name] = values[order]
    stages, ids, replicas = (table.pop(name) for name in ("stage", "id", "replica"))
    return PlainRequests(
        columns=RequestColumns(**table, itl=Distribution.of(np.empty(0)), tokens_by_second=np.empty(0)),
        stages=stages,
        ids=ids,
        replicas=replicas,
    )


def _read(reader: RecordingReader) -> dict[str, Any]:
    """Return the columns without the tokens of chunks, in the order in which the requests were recorded."""
    rows = reader.request_rows(_COLUMNS, where=_VALID)
    empty = np.empty(0, dtype=_TYPES)
    columns = {name: GrowingColumn(_compact(name, empty[name])) for name, _ in _TYPES}
    while (block := np.fromiter(itertools.islice(rows, _BLOCK), dtype=_TYPES)).size:
        for name, column in columns.items():
            column.append(_compact(name, block[name]))
    return {name: column.values for name, column in columns.items()}


def _compact(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if name in _NARROW:
        return narrowed(values)
    if name == _SOURCE:
        codes = np.full(values.size, UNKNOWN_SOURCE, dtype=np.int8)
        for code, source in enumerate(TOKEN_SOURCES):
            codes[values == source[0]] = code
        return codes
    return values


def _single(values: FloatArray) -> Any:
    return values.astype(np.float32, copy=False)


def _chunk_counts(reader: RecordingReader, sequence: IntArray, chunks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the tokens of the first chunk, 1 for a request without chunks, and those of all chunks of each row."""
    first, counted = np.ones(chunks.shape), chunks.astype(np.float64)
    by_sequence = np.argsort(sequence)
    blobs = reader.request_rows(("seq", "chunk_tokens"), where=f"chunk_tokens IS NOT NULL AND {_VALID}")
    while block := list(itertools.islice(blobs, _BLOCK)):
        found, first_of_block, total = _chunk_tokens(block)
        rows = by_sequence[np.searchsorted(sequence, found, sorter=by_sequence)]
        first[rows], counted[rows] = first_of_block, total
    return narrowed(first), counted


def _chunk_tokens(rows: Sequence[tuple[int, bytes]]) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the row number, the tokens of the first chunk and those of all chunks of each row."""
    found = [
        _chunk_sums([row for row in rows if (row[1][:1] == b"1") == narrow], narrow=narrow) for narrow in (True, False)
    ]
    sequence, first, total = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return sequence, first, total


def _chunk_sums(rows: Sequence[tuple[int, bytes]], *, narrow: bool) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the same for rows whose counts have one byte each, or four (core/chunk_codec.py)."""
    kept = [(number, blob[1:]) for number, blob in rows if len(blob) > 1]
    counts = np.frombuffer(b"".join(blob for _, blob in kept), dtype="<u1" if narrow else "<u4")
    lengths = np.array([len(blob) for _, blob in kept], dtype=np.int64) // (1 if narrow else 4)
    starts = np.cumsum(lengths) - lengths
    totals = np.add.reduceat(counts, starts, dtype=np.float64) if kept else np.empty(0)
    return np.array([number for number, _ in kept], dtype=np.int64), counts[starts].astype(np.float64), totals
