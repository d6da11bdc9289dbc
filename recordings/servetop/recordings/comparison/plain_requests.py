"""Reads the request rows without decoding the times of their chunks, which a comparison does not need."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from servetop.analysis.columns.request_columns import STATUSES, RequestColumns
from servetop.analysis.confounding.measure import RequestTable
from servetop.analysis.percentiles import Distribution
from servetop.core.arrays import BoolArray, FloatArray, IntArray
from servetop.core.chunk_codec import chunk_sizes_known
from servetop.core.events import RequestStatus, TokenSource
from servetop.recordings.read.reader import RecordingReader

_BLOCK = 20_000
_TIMES = ("due", "sent", "first_token_at", "done_at", "first_output_at")
_TOKENS = ("prompt_tokens", "output_tokens", "reasoning_tokens", "required_tokens")
_METRIC_COLUMNS = (*_TIMES, *_TOKENS)
_CODED = " ".join(f"WHEN '{status}' THEN {code}" for code, status in enumerate(STATUSES))
_SOURCE = "token_source"
_EXPRESSIONS = {"status": f"CASE status {_CODED} END", "chunks": "ifnull(length(chunk_times) / 4, 0)"}
_TYPES: Any = [
    *((name, "f8") for name in _TIMES),
    *((name, "f4") for name in (*_TOKENS, "stage", "replica", "chunks")),
    *((name, "i8") for name in ("seq", "id")),
    ("status", "i1"),
    (_SOURCE, "U1"),
]
"""Single precision is exact up to 16 million; the first letter of a source of token counts is enough."""
_COLUMNS = [_EXPRESSIONS.get(name, name) for name, _ in _TYPES]
_STATUSES = ", ".join(f"'{each}'" for each in STATUSES)
_VALID = f"due IS NOT NULL AND typeof(id) = 'integer' AND status IN ({_STATUSES})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainRequests:
    """All requests in the order in which they were recorded; arrays of shape (requests,)."""

    table: npt.NDArray[Any]
    """One record per request, with the names of the columns; NaN is unknown."""
    first_tokens: FloatArray
    """Tokens of the first chunk; 1 for a request without chunks."""
    sized: BoolArray
    """Whether the tokens of each chunk are known."""

    def rows_of_stage(self, index: int) -> IntArray:
        """Return the places of the requests of one stage, in order of due time and number."""
        rows = np.flatnonzero(self.table["stage"] == index)
        return rows[np.lexsort((self.table["id"][rows], self.table["due"][rows]))]

    def lengths(self) -> RequestTable:
        """Return the requests as the conditions of a run need them."""
        status = self.table["status"]
        return RequestTable(
            ids=self.table["id"],
            stages=self.table["stage"],
            prompt=self.table["prompt_tokens"],
            output=self.table["output_tokens"],
            ok=status == STATUSES.index(RequestStatus.OK),
            cancelled=status == STATUSES.index(RequestStatus.CANCELLED),
            replicas=self.table["replica"],
        )

    def columns(self, rows: IntArray) -> RequestColumns:
        """Return the columns of these requests, without token gaps and without the sources of token counts."""
        return RequestColumns(
            **{name: self.table[name][rows].astype(np.float64, copy=False) for name in _METRIC_COLUMNS},
            status=self.table["status"][rows].astype(np.int64),
            token_source=np.zeros(rows.size, dtype="<U1"),
            first_tokens=self.first_tokens[rows],
            sized=self.sized[rows],
            itl=Distribution.of(np.empty(0)),
            tokens_by_second=np.empty(0),
        )


def load_plain_requests(reader: RecordingReader) -> PlainRequests:
    """Read all requests with a valid status."""
    table = np.fromiter(reader.request_rows(_COLUMNS, where=_VALID), dtype=_TYPES)
    first, counted = np.ones(table.size), table["chunks"].astype(np.float64)
    by_sequence = np.argsort(table["seq"])
    blobs = reader.request_rows(("seq", "chunk_tokens"), where=f"chunk_tokens IS NOT NULL AND {_VALID}")
    while block := list(itertools.islice(blobs, _BLOCK)):
        sequence, first_of_block, total = _chunk_tokens(block)
        rows = by_sequence[np.searchsorted(table["seq"], sequence, sorter=by_sequence)]
        first[rows], counted[rows] = first_of_block, total
    sized = chunk_sizes_known(table["output_tokens"], counted) | (table[_SOURCE] == TokenSource.DISPUTED[0])
    return PlainRequests(table=table, first_tokens=first, sized=sized)


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
