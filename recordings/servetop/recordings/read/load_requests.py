"""Loads requests as columns, in blocks of rows: with the sums of their chunks, or by stage and without their times."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import orjson

from servetop.analysis.columns.request_columns import (
    PER_REQUEST,
    STATUSES,
    TOKEN_SOURCES,
    UNKNOWN_SOURCE,
    CodeArray,
    RequestColumns,
    StageRequests,
    narrowed,
)
from servetop.analysis.statistics.percentiles import Distribution
from servetop.analysis.summary.in_flight_timeline import InFlightTimeline
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.chunk_codec import chunk_sizes_known
from servetop.core.errors import RecordingError
from servetop.core.events import RequestRecord, RequestStatus, TokenSource
from servetop.recordings.format.column_bounds import NOT_NULL
from servetop.recordings.format.request_codec import ENDED
from servetop.recordings.read.growing_column import GrowingColumn
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.request_chunks import Chunks, counted_tokens

BLOCK = 5000
"""Maximum requests whose chunks are in memory at once."""
Rows = Mapping[str, npt.NDArray[Any]]
"""Columns of TYPES by name, of a block of requests."""
_NARROW = ("prompt_tokens", "output_tokens", "first_output_at", "reasoning_tokens", "required_tokens")
NARROW = (*_NARROW, "first_tokens")
"""Columns in single precision where that is exact."""
_NUMBERS = ("due", "sent", "first_token_at", "done_at", *_NARROW)
_OTHERS = {
    **dict.fromkeys(("stage", "replica", "turn", "chunks", "worker", "http_status"), "f4"),
    "id": "i8",
    **dict.fromkeys(("cached_tokens", "conversation", "headers_at"), "f8"),
    **dict.fromkeys(("server_queue", "server_prefill", "server_decode"), "f8"),
    **dict.fromkeys(("error", "model"), "O"),
}
"""Optional columns with one value per request."""
TYPES: dict[str, Any] = {
    **dict.fromkeys(_NUMBERS, "f8"),
    **_OTHERS,
    "status": "i1",
    "token_source": "U1",
    **dict.fromkeys(("chunk_times", "chunk_tokens"), "O"),
}
"""The first letter of a source of token counts is enough."""
ALWAYS = (*_NUMBERS, "status", "token_source", "chunk_tokens")
_NEVER = 1e300
"""A time in seconds after the end of any run."""
_CODED = " ".join(f"WHEN '{status}' THEN {code}" for code, status in enumerate(STATUSES))
EXPRESSIONS = {"status": f"CASE status {_CODED} END", "chunks": "ifnull(length(chunk_times) / 4, 0)"}
_STATUSES = ", ".join(f"'{each}'" for each in STATUSES)
_VALID = f"due IS NOT NULL AND status IN ({_STATUSES})"
_DISPUTED = TOKEN_SOURCES.index(TokenSource.DISPUTED)
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

    def as_json(self) -> str:
        """Return start and exclusions as `run.counted` has them; a stage without a start is excluded as a whole.

        A run that ended in its warm-up has no counted requests: JSON has no infinity, so they start at `_NEVER`.
        """
        since = _NEVER if self.start == math.inf else self.start
        without = [[stage, start if math.isfinite(start) else None] for stage, start in self.excluded]
        return orjson.dumps({"since": since, "without": without}).decode()

    def chosen(self, stages: FloatArray, due: FloatArray) -> BoolArray:
        """Return a mask of the requests with these stages and due times that the SQL condition holds for.

        Only of a selection of any model and replica. A stage is NaN where it is unknown, as NULL in SQL.
        """
        mask = np.ones(due.size, dtype=bool) if self.stage is None else stages == self.stage
        if self.start is not None:
            mask &= due >= self.start
        if self.until is not None:
            mask &= due < self.until
        for stage, start in self.excluded:
            mask &= ~((np.isnan(stages) | (stages == stage)) & (due >= start))
        return mask

    def selects(self, request: RequestRecord) -> bool:
        """Whether the SQL condition holds for a request."""
        equal = {"stage": self.stage, "model": self.model, "replica": self.replica}
        return (
            all(value is None or getattr(request, name) == value for name, value in equal.items())
            and (self.start is None or request.due >= self.start)
            and (self.until is None or request.due < self.until)
            and not any(request.stage == stage and request.due >= start for stage, start in self.excluded)
        )


def load_requests(reader: RecordingReader, selection: Selection, *, others: Sequence[str] = ()) -> RequestColumns:
    """Read the selected requests and the sums of their chunks; takes about 60 bytes per request.

    `others` are optional columns, which take 4 or 8 bytes more each: stage, replica, id, turn, cached_tokens.
    """
    columns, gaps, by_second = gathered(
        request_blocks(reader, selection, (*others, "chunk_times"), measure=lambda rows: Chunked.of(rows).whole())
    )
    found = {name: columns.pop(name) for name in others}
    return RequestColumns(**columns, itl=gaps, tokens_by_second=by_second, others=found)


def load_stage_requests(reader: RecordingReader) -> StageRequests:
    """Read all requests without decoding the times of their chunks; takes about 80 bytes per request."""
    names = ("stage", "id", "replica", "chunks")
    columns, gaps, by_second = gathered(request_blocks(reader, Selection(), names, measure=without_times))
    del columns["chunks"]
    order = np.lexsort((columns["id"], columns["due"], columns["stage"]))
    for name, values in columns.items():
        columns[name] = values[order]
    stages, ids, replicas = (columns.pop(name) for name in names[:3])
    requests = RequestColumns(**columns, itl=gaps, tokens_by_second=by_second)
    return StageRequests(columns=requests, stages=stages, ids=ids, replicas=replicas)


def load_timeline(reader: RecordingReader) -> InFlightTimeline:
    """Read from an index when each request was sent and ended; takes 16 bytes per request."""
    rows = reader.request_rows(("sent", ENDED), where=f"{ENDED} IS NOT NULL")
    pairs = np.fromiter(rows, dtype=[("sent", "f8"), ("ended", "f8")])
    return InFlightTimeline.of(pairs["sent"], pairs["ended"])


def request_blocks(
    reader: RecordingReader,
    selection: Selection,
    names: Sequence[str],
    *,
    measure: Callable[[Rows], RequestColumns],
) -> Iterator[RequestColumns]:
    """Yield an empty block, then the valid requests in blocks; RecordingError if one cannot be read."""
    names = (*ALWAYS, *names)
    where, parameters = selection.where
    valid = " AND ".join([_VALID, *(["typeof(id) = 'integer'"] if "id" in names else [])])
    columns = [EXPRESSIONS.get(name, name) for name in names]
    where = f"{valid} AND {where}" if where else valid
    rows = reader.request_rows(columns, where=where, parameters=parameters)
    part = np.empty(0, dtype=[(name, TYPES[name]) for name in names])
    while True:
        try:
            yield measure({name: part[name] for name in names})
            part = np.fromiter(itertools.islice(rows, BLOCK), dtype=part.dtype)
        except (ValueError, TypeError) as error:
            raise RecordingError(f"{reader.path} is damaged: its request rows are invalid ({error})") from error
        if not part.size:
            return
        part = part[~np.any([np.isnan(part[name]) for name in NOT_NULL], axis=0)]


def gathered(blocks: Iterator[RequestColumns]) -> tuple[dict[str, Any], Distribution, FloatArray]:
    """Return the columns of all blocks by name, the gaps between tokens, and the tokens by second."""
    first = next(blocks)
    columns = {name: GrowingColumn(values) for name, values in _arrays(first).items()}
    gaps, by_second = [first.itl], first.tokens_by_second
    for block in blocks:
        for name, values in _arrays(block).items():
            columns[name].append(values)
        by_second = sum_of(by_second, block.tokens_by_second)
        gaps.append(block.itl)
        if sum(each.values.size for each in gaps[1:]) > max(gaps[0].values.size, _MIN_PENDING_GAPS):
            gaps = [Distribution.merged(gaps)]
    return {name: column.values for name, column in columns.items()}, Distribution.merged(gaps), by_second


def _arrays(block: RequestColumns) -> dict[str, npt.NDArray[Any]]:
    return {**{name: getattr(block, name) for name in PER_REQUEST}, **block.others}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunked:
    """Requests with their chunks."""

    columns: RequestColumns
    """Without token gaps and without the tokens of each second."""
    chunks: Chunks
    sent: FloatArray
    """When each request was sent, or due if that is unknown; seconds."""
    hidden: FloatArray
    """Reasoning tokens that were counted with the first chunk, but not sent."""

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Decode the chunks of a block; ValueError if they are invalid."""
        chunks = Chunks.of(rows["chunk_times"].tolist(), rows["chunk_tokens"].tolist())
        return cls(
            columns=_columns(rows, first_tokens=chunks.first_tokens, counted=chunks.totals),
            chunks=chunks,
            sent=np.where(np.isnan(rows["sent"]), rows["due"], rows["sent"]),
            hidden=np.where(rows["first_output_at"] == rows["first_token_at"], rows["reasoning_tokens"], 0.0),
        )

    def gaps_and_tokens(self, first: int, stop: int) -> tuple[Distribution, FloatArray]:
        """Return the gaps between the tokens, and the tokens of each second, of the requests at these places."""
        here, chunks = slice(first, stop), self.chunks.part(first, stop)
        measured = self.columns.with_status(RequestStatus.OK) & self.columns.sized
        gaps = chunks.inter_token_latencies(measured[here])
        return gaps, chunks.tokens_by_second(self.sent[here], hidden=self.hidden[here])

    def whole(self) -> RequestColumns:
        """Return all requests with their gaps and tokens of each second."""
        gaps, by_second = self.gaps_and_tokens(0, self.sent.size)
        return dataclasses.replace(self.columns, itl=gaps, tokens_by_second=by_second)


def without_times(rows: Rows) -> RequestColumns:
    """Return requests without the times of their chunks; `rows` have ALWAYS and `chunks`, their number."""
    first_tokens, counted = counted_tokens(rows["chunk_tokens"].tolist(), chunks=rows["chunks"])
    return _columns(rows, first_tokens=first_tokens, counted=counted)


def _columns(rows: Rows, *, first_tokens: FloatArray, counted: FloatArray) -> RequestColumns:
    """Return requests, whose chunks carry `counted` tokens, without gaps and without tokens of each second."""
    numbers: dict[str, Any] = {name: narrowed(rows[name]) if name in _NARROW else rows[name] for name in _NUMBERS}
    sources = _source_codes(rows["token_source"])
    # a disputed count is the server's, so the chunks are used
    sized = chunk_sizes_known(rows["output_tokens"], counted) | (sources == _DISPUTED)
    return RequestColumns(
        **numbers,
        status=rows["status"],
        token_source=sources,
        first_tokens=narrowed(first_tokens),
        sized=np.asarray(sized),
        itl=Distribution.of(np.empty(0)),
        tokens_by_second=np.empty(0),
        others={name: rows[name] for name in _OTHERS if name in rows},
    )


def _source_codes(letters: npt.NDArray[np.str_]) -> CodeArray:
    codes = np.full(letters.size, UNKNOWN_SOURCE, dtype=np.int8)
    for code, source in enumerate(TOKEN_SOURCES):
        codes[letters == source[0]] = code
    return codes


def sum_of(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the sum of two arrays of the tokens of each second, of which the shorter one ends with zeros."""
    short, long = sorted((left, right), key=len)
    total = long.copy()
    total[: short.size] += short
    return total
