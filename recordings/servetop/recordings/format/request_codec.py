"""Encodes a request as a row: typed columns, and blobs of chunk times and tokens (core/chunk_codec.py)."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

from servetop.core.arrays import np
from servetop.core.chunk_codec import pack_counts, pack_times, unpack_counts, unpack_times
from servetop.core.events import RequestRecord
from servetop.recordings.format.row_codec import Column, EventReader, RowValues, column_of, encoded

_HINTS = typing.get_type_hints(RequestRecord)
_ARRAYS = ("chunk_times", "chunk_tokens")
_TEXTS = ("prompt_text", "output_text")

PLAIN = tuple(column_of(name, hint) for name, hint in _HINTS.items() if name not in (*_ARRAYS, *_TEXTS))
CHUNKS = (
    Column("chunk_times", "BLOB", "chunk_times", bytes, None),
    Column("chunk_tokens", "BLOB", "chunk_tokens", bytes, None),
)
TEXTS = tuple(column_of(name, _HINTS[name]) for name in _TEXTS)
_read = EventReader(RequestRecord, (*PLAIN, *TEXTS))

ENDED = "coalesce(done_at, first_token_at, sent)"
"""SQL expression for the time at which a request ended, or was last known; NULL if never sent. It has an index."""


def last_known_at(request: RequestRecord) -> float:
    """Return the time at which a request ended, or was last known, as `ENDED`; when it was due if it was never sent."""
    times = (request.done_at, request.first_token_at, request.sent, request.due)
    return next(each for each in times if each is not None)


class RequestCodec:
    """Codec of table `request`; chunk times are microseconds since `sent`."""

    columns = (*PLAIN, *CHUNKS, *TEXTS)

    def encode(self, event: RequestRecord) -> tuple[Any, ...]:
        """Return the values of a row; both blobs are NULL for a request without chunks."""
        return (*encoded(event, PLAIN), *self._chunks(event), *encoded(event, TEXTS))

    @staticmethod
    def _chunks(event: RequestRecord) -> tuple[bytes | None, bytes | None]:
        if not event.chunk_times.size:
            return None, None
        base = event.due if event.sent is None else event.sent
        return pack_times(event.chunk_times, base=base), pack_counts(event.chunk_tokens) or None

    def decode(self, row: RowValues) -> RequestRecord:
        """Decode a row; ValueError for blobs of invalid length."""
        blob = row.get("chunk_times") or b""
        base = row["due"] if row["sent"] is None else row["sent"]
        times = unpack_times(blob, base=base)
        tokens = unpack_counts(row.get("chunk_tokens") or b"", chunks=times.size)
        if tokens.shape != times.shape:
            raise ValueError(f"{times.size} chunk times but {tokens.size} chunk token counts")
        return _read(row, chunk_times=times, chunk_tokens=tokens.astype(np.int64))

    def decode_all(self, rows: Sequence[RowValues]) -> list[RequestRecord]:
        """Decode several rows."""
        return [self.decode(row) for row in rows]


REQUESTS = RequestCodec()
