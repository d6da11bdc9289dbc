"""Reads the request rows without decoding the times of their chunks, which a comparison does not need."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from servetop.analysis.columns.request_columns import STATUSES, RequestColumns
from servetop.analysis.percentiles import Distribution
from servetop.core.arrays import FloatArray, IntArray
from servetop.core.chunk_codec import chunk_sizes_known
from servetop.core.events import TokenSource
from servetop.recordings.format.column_bounds import NOT_NULL
from servetop.recordings.read.reader import RecordingReader

_BLOCK = 20_000
_NUMBERS = ("due", "sent", "first_token_at", "done_at", "prompt_tokens", "output_tokens",
            "first_output_at", "reasoning_tokens")  # fmt: skip
_COLUMNS = (*_NUMBERS, "id", "stage", "status", "token_source", "length(chunk_times) / 4", "chunk_tokens")
_STATUS_NUMBERS = {status: number for number, status in enumerate(STATUSES)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainRequests:
    """Requests in order of due time, with their numbers and stages; without token gaps."""

    columns: RequestColumns
    number: IntArray
    stage: IntArray

    def of_stage(self, index: int) -> PlainRequests:
        """Return the requests of one stage."""
        return self._chosen(np.flatnonzero(self.stage == index))

    def in_order(self) -> PlainRequests:
        """Return the requests in order of due time and number."""
        return self._chosen(np.lexsort((self.number, self.columns.due)))

    def _chosen(self, rows: IntArray) -> PlainRequests:
        names = (*_NUMBERS, "status", "token_source", "first_tokens", "sized")
        chosen: dict[str, Any] = {name: getattr(self.columns, name)[rows] for name in names}
        return PlainRequests(columns=replace(self.columns, **chosen), number=self.number[rows], stage=self.stage[rows])


def load_plain_requests(reader: RecordingReader) -> PlainRequests:
    """Read all requests with a valid status, in order of due time."""
    rows = reader.request_rows(_COLUMNS)
    status, required = _COLUMNS.index("status"), [_COLUMNS.index(name) for name in ("due", *sorted(NOT_NULL))]
    valid = (row for row in rows if row[status] in _STATUS_NUMBERS and all(row[at] is not None for at in required))
    blocks = [_block([])]
    while block := list(itertools.islice(valid, _BLOCK)):
        blocks.append(_block(block))
    return PlainRequests(
        columns=RequestColumns(
            **{name: np.concatenate([block[name] for block in blocks]) for name in blocks[0] if name not in _OWN},
            itl=Distribution.of(np.empty(0)),
            tokens_by_second=np.empty(0),
        ),
        number=np.concatenate([block["number"] for block in blocks]),
        stage=np.concatenate([block["stage"] for block in blocks]),
    ).in_order()


_OWN = ("number", "stage")


def _block(rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    values = dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(_COLUMNS, ())
    arrays: dict[str, Any] = {name: np.array(values[name], dtype=np.float64) for name in _NUMBERS}
    chunks = np.array(values["length(chunk_times) / 4"], dtype=np.float64)
    sources = np.array([each or "" for each in values["token_source"]], dtype="<U9")
    first, counted = _chunk_tokens(values["chunk_tokens"], np.nan_to_num(chunks))
    return arrays | {
        "status": np.array([_STATUS_NUMBERS[each] for each in values["status"]], dtype=np.int64),
        "token_source": sources,
        "first_tokens": first,
        "sized": chunk_sizes_known(arrays["output_tokens"], counted) | (sources == TokenSource.DISPUTED),
        "number": np.array(values["id"], dtype=np.int64),
        "stage": np.array(values["stage"], dtype=np.int64),
    }


def _chunk_tokens(blobs: Sequence[bytes | None], chunks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the tokens of each request's first chunk, and of all its chunks (core/chunk_codec.py)."""
    first, total = np.ones(chunks.size), chunks.copy()
    for place, blob in enumerate(blobs):
        if blob:
            counts = np.frombuffer(blob, dtype="<u1" if blob[:1] == b"1" else "<u4", offset=1)
            first[place], total[place] = counts[0], counts.sum()
    return first, total
