"""Loads requests and the sums of their chunks as columns, in blocks of rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from servetop.analysis.columns.request_columns import (
    PER_REQUEST,
    STATUSES,
    TOKEN_SOURCES,
    CodeArray,
    RequestColumns,
    narrowed,
    source_codes,
)
from servetop.analysis.statistics.percentiles import Distribution
from servetop.analysis.summary.in_flight_timeline import InFlightTimeline
from servetop.core.arrays import BoolArray, FloatArray, IntArray
from servetop.core.chunk_codec import chunk_sizes_known, unpack_counts
from servetop.core.errors import RecordingError
from servetop.core.events import RequestStatus, TokenSource
from servetop.core.units import US_PER_S
from servetop.recordings.format.column_bounds import MAX_RUN_SECONDS, NOT_NULL
from servetop.recordings.format.request_codec import ENDED
from servetop.recordings.read.growing_column import GrowingColumn
from servetop.recordings.read.reader import RecordingReader

BLOCK = 5000
"""Maximum requests whose chunks are in memory at once."""
_NUMBERS = (
    "due",
    "sent",
    "first_token_at",
    "done_at",
    "prompt_tokens",
    "output_tokens",
    "first_output_at",
    "reasoning_tokens",
    "required_tokens",
)
_NARROW = _NUMBERS[4:]
_COLUMNS = (*_NUMBERS, "status", "token_source", "chunk_times", "chunk_tokens")
_STATUS = _COLUMNS.index("status")
_DISPUTED = TOKEN_SOURCES.index(TokenSource.DISPUTED)
_not_null_values = itemgetter(*(_COLUMNS.index(name) for name in ("due", *sorted(NOT_NULL))))
_SHORT_GAP, _FEW_TOKENS = 1 << 20, 16
"""Gaps up to these limits, in microseconds and tokens per chunk, are counted instead of sorted."""
_MIN_PENDING_GAPS = 1_000_000
"""Gaps that wait to be merged, or more: as many as were merged before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selects requests by stage, due time (seconds), model and replica; by default all."""

    stage: int | None = None
    start: float | None = None
    until: float | None = None
    excluded: Sequence[tuple[int, float]] = ()
    """Pairs of a stage and the start of its cool-down: requests due from then on are excluded."""
    model: str | None = None
    """Only requests for this model of a mix."""
    replica: int | None = None
    """Only requests served by this replica."""

    @property
    def where(self) -> tuple[str, tuple[float | str, ...]]:
        """The SQL condition and its parameters."""
        conditions: dict[str, float | str | None] = {
            "stage = ?": self.stage,
            "due >= ?": self.start,
            "due < ?": self.until,
            "model = ?": self.model,
            "replica = ?": self.replica,
        }
        active = {text: value for text, value in conditions.items() if value is not None}
        exclusions = ["NOT (stage = ? AND due >= ?)"] * len(self.excluded)
        parameters = (*active.values(), *(value for pair in self.excluded for value in pair))
        return " AND ".join([*active, *exclusions]), parameters


def load_requests(reader: RecordingReader, selection: Selection) -> RequestColumns:
    """Read the selected requests without texts and chunks; memory grows by about 60 bytes per request."""
    columns = {name: GrowingColumn(getattr(_EMPTY, name)) for name in PER_REQUEST}
    gaps: list[Distribution] = []
    by_second = np.zeros(0)
    for block in _blocks(reader, selection):
        for name, column in columns.items():
            column.append(getattr(block, name))
        by_second = _sum_of(by_second, block.tokens_by_second)
        gaps.append(block.itl)
        if sum(each.values.size for each in gaps[1:]) > max(gaps[0].values.size, _MIN_PENDING_GAPS):
            gaps = [Distribution.merged(gaps)]
    arrays: dict[str, Any] = {name: column.values for name, column in columns.items()}
    return RequestColumns(**arrays, itl=Distribution.merged(gaps), tokens_by_second=by_second)


def load_timeline(reader: RecordingReader) -> InFlightTimeline:
    """Read from an index when each request was sent and ended; takes 16 bytes per request."""
    rows = reader.request_rows(("sent", ENDED), where=f"{ENDED} IS NOT NULL")
    pairs = np.fromiter(rows, dtype=[("sent", "f8"), ("ended", "f8")])
    return InFlightTimeline.of(pairs["sent"], pairs["ended"])


def _blocks(reader: RecordingReader, selection: Selection) -> Iterator[RequestColumns]:
    """Yield blocks of rows, without invalid rows of torn pages."""
    where, parameters = selection.where
    rows = reader.request_rows(_COLUMNS, where=where, parameters=parameters)
    valid = (row for row in rows if row[_STATUS] in STATUSES and None not in _not_null_values(row))
    while block := list(itertools.islice(valid, BLOCK)):
        try:
            yield _block(dict(zip(_COLUMNS, zip(*block, strict=True), strict=True)))
        except (ValueError, TypeError) as error:
            raise RecordingError(f"{reader.path} is damaged: its request rows are invalid ({error})") from error


def _block(columns: dict[str, tuple[Any, ...]]) -> RequestColumns:
    numbers: dict[str, Any] = {name: np.array(columns[name], dtype=np.float64) for name in _NUMBERS}
    status = np.array([STATUSES.index(each) for each in columns["status"]], dtype=np.int8)
    base = np.where(np.isnan(numbers["sent"]), numbers["due"], numbers["sent"])
    chunks = Chunks.of(columns["chunk_times"], columns["chunk_tokens"])
    counts, micros, tokens = chunks.counts, chunks.micros, chunks.tokens
    sources = source_codes(columns["token_source"])
    sized = chunks.sized(numbers["output_tokens"], sources)
    in_itl = np.repeat((status == STATUSES.index(RequestStatus.OK)) & sized, counts)
    in_itl[_first_chunks(counts)] = False
    return RequestColumns(
        **numbers | {name: narrowed(numbers[name]) for name in _NARROW},
        status=status,
        token_source=sources,
        first_tokens=narrowed(chunks.first_tokens),
        sized=sized,
        itl=_inter_token_latencies(micros[in_itl], tokens[in_itl]),
        tokens_by_second=_by_second(_arrivals(micros, counts, base=base), _received(tokens, counts, numbers)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunks:
    """The chunks of several requests, concatenated."""

    counts: IntArray
    """Number of chunks of each request."""
    micros: IntArray
    """Microseconds of each chunk since the previous one, or since the request was sent."""
    tokens: IntArray
    """Tokens of each chunk."""

    @classmethod
    def of(cls, times: Sequence[bytes | None], tokens: Sequence[bytes | None]) -> Chunks:
        """Decode columns `chunk_times` and `chunk_tokens`; ValueError if they do not match."""
        blobs = [blob or b"" for blob in times]
        counts = np.array([len(blob) // 4 for blob in blobs], dtype=np.int64)
        micros = np.frombuffer(b"".join(blobs), dtype="<u4").astype(np.int64)
        decoded = _tokens(tokens, counts)
        if decoded.size != micros.size:
            raise ValueError(f"{micros.size} chunk times but {decoded.size} chunk token counts")
        return cls(counts=counts, micros=micros, tokens=decoded)

    @property
    def first_tokens(self) -> FloatArray:
        """Tokens of each request's first chunk; 1 for a request without chunks."""
        tokens = np.ones(self.counts.size)
        tokens[self.counts > 0] = self.tokens[_first_chunks(self.counts)]
        return tokens

    def sized(self, output_tokens: FloatArray, sources: CodeArray) -> BoolArray:
        """Return, for each request, whether the tokens of its chunks add up to its output tokens."""
        sums = np.concatenate([[0], np.cumsum(self.tokens)])
        ends = np.cumsum(self.counts)
        known = chunk_sizes_known(output_tokens, sums[ends] - sums[ends - self.counts])
        # a disputed count is the server's, so the chunks are used
        return np.asarray(known | (sources == _DISPUTED))


def _tokens(blobs: Sequence[bytes | None], chunks: IntArray) -> IntArray:
    """Return the tokens of all chunks of all requests, concatenated."""
    if not any(blobs):
        return np.ones(int(chunks.sum()), dtype=np.int64)
    parts = [unpack_counts(blob or b"", chunks=int(count)) for blob, count in zip(blobs, chunks, strict=True)]
    return np.concatenate(parts)


def _received(tokens: IntArray, chunks: IntArray, numbers: Mapping[str, FloatArray]) -> IntArray:
    """Return the tokens of each chunk without reasoning that was counted with the first one, but not sent."""
    hidden = np.where(numbers["first_output_at"] == numbers["first_token_at"], numbers["reasoning_tokens"], 0.0)
    first, received = _first_chunks(chunks), tokens.copy()
    known = np.nan_to_num(hidden[chunks > 0]).astype(np.int64)
    received[first] -= np.minimum(known, np.maximum(tokens[first] - 1, 0))
    return received


def _first_chunks(chunks: IntArray) -> IntArray:
    """Return the position of the first chunk of each request that has chunks."""
    return (np.cumsum(chunks) - chunks)[chunks > 0]


def _inter_token_latencies(micros: IntArray, tokens: IntArray) -> Distribution:
    """Return the distribution of ITL; counting whole microseconds is about thirty times as fast as sorting."""
    counted = (tokens > 0) & (micros < _SHORT_GAP) & (tokens <= _FEW_TOKENS)
    others = ~counted & (tokens > 0)
    parts = [Distribution.of(micros[others] / tokens[others] / US_PER_S, weights=tokens[others])]
    for each in np.flatnonzero(np.bincount(tokens[counted])):
        counts = np.bincount(micros[counted & (tokens == each)])
        seen = np.flatnonzero(counts)
        parts.append(Distribution(seen / each / US_PER_S, counts[seen] * each))
    return Distribution.merged(parts)


def _arrivals(micros: IntArray, chunks: IntArray, *, base: FloatArray) -> FloatArray:
    """Return the arrival times of all chunks: the cumulative gaps of each request, added to its base."""
    total = np.concatenate([[0], np.cumsum(micros)])
    before = total[np.cumsum(chunks) - chunks]
    return np.asarray(np.repeat(base, chunks) + (total[1:] - np.repeat(before, chunks)) / US_PER_S)


def _by_second(times: FloatArray, tokens: IntArray) -> FloatArray:
    seconds = np.maximum(np.floor(times), 0).astype(np.int64)
    if seconds.size and seconds.max() > MAX_RUN_SECONDS:
        raise ValueError(f"a token arrived in second {seconds.max():,} of the run")
    return np.bincount(seconds, weights=tokens).astype(np.float64)


def _sum_of(left: FloatArray, right: FloatArray) -> FloatArray:
    short, long = sorted((left, right), key=len)
    total = long.copy()
    total[: short.size] += short
    return total


_EMPTY = _block(dict.fromkeys(_COLUMNS, ()))
