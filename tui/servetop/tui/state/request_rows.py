"""Requests as rows: what is known of each at an instant, how they are ordered, and where their phases lie."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from servetop.core.events import RequestRecord, RequestStatus
from servetop.tui.drawing.text_runs import Run, merged
from servetop.tui.state.frame import View

COLUMNS = ("due", "ttft", "itl", "itl_max", "e2el", "prompt_tokens", "output_tokens", "status", "id")
"""What rows can be ordered by, in the order of the sort key."""
_CELLS = 60
"""Of the time axis, about."""
PHASES = (("╌", "muted", "held"), ("░", "orange", "to first token"), ("█", "sky", "decode"))
"""How each phase is drawn, and its name: due → sent, sent → first token, first token → end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """One request as of an instant, in seconds and tokens; NaN is not known by then."""

    record: RequestRecord
    id: int
    due: float
    ttft: float
    itl: float
    """Mean over tokens: time from the first chunk to the last ÷ tokens of all but the first."""
    itl_max: float
    """The longest gap between two chunks."""
    e2el: float
    prompt_tokens: int
    output_tokens: int
    status: str
    failed: bool


def row_of(record: RequestRecord, at: float) -> RequestRow:
    """What could be known at `at`: of a request under way then, its chunks so far."""
    seen = int(np.searchsorted(record.chunk_times, at, side="right"))
    times, tokens = record.chunk_times[:seen], record.chunk_tokens[:seen]
    later = int(tokens[1:].sum())
    over = ended_at(record) <= at
    started = record.first_token_at is not None and record.first_token_at <= at
    under_way = "… decode" if started else "… waits"
    return RequestRow(
        record=record,
        id=record.id,
        due=record.due,
        ttft=_or_nan(record.ttft) if started else math.nan,
        itl=float(times[-1] - times[0]) / later if later else math.nan,
        itl_max=float(np.diff(times).max()) if times.size > 1 else math.nan,
        e2el=_or_nan(record.e2el) if over else math.nan,
        prompt_tokens=record.prompt_tokens,
        output_tokens=record.output_tokens if over else int(tokens.sum()),
        status=("" if record.status is RequestStatus.OK else "✖ ") + record.status.value if over else under_way,
        failed=over and record.status is not RequestStatus.OK,
    )


class RowCache:
    """Works out rows; those of requests that are over once, for they do not change any more."""

    def __init__(self) -> None:
        self._over: Mapping[int, RequestRow] = {}

    def rows(self, records: Iterable[RequestRecord], at: float) -> list[RequestRow]:
        """As of an instant; what is not among these records is forgotten."""
        before, over = self._over, {}
        found = []
        for record in records:
            ended = ended_at(record) <= at
            row = before.get(record.id) if ended else None
            found.append(row := row_of(record, at) if row is None else row)
            if ended:
                over[record.id] = row
        self._over = over
        return found


def pointed_at(
    rows: Iterable[RequestRow], view: View, *, window: tuple[float, float], otherwise: int | None
) -> int | None:
    """The id of the row that is nearest to the cell of the heat map that the cursor was put on.

    By the ratio of the latencies, at best one whose first token came within a cell's time.
    """
    cursor, metric = view.cursor, view.metric
    known = [row for row in rows if getattr(row, metric) > 0]
    if cursor is None or cursor.latency is None or not known:
        return otherwise
    at, latency, within = cursor.at, cursor.latency, (window[1] - window[0]) / _CELLS

    def distance(row: RequestRow) -> tuple[bool, float]:
        first = row.record.first_token_at
        return first is None or abs(at - first) > within, abs(math.log(getattr(row, metric) / latency))

    return min(known, key=distance).id


def ended_at(record: RequestRecord) -> float:
    """When it ended as far as is known, seconds."""
    known = (record.done_at, record.first_token_at, record.sent, record.due)
    return next(at for at in known if at is not None)


def ordered(rows: Iterable[RequestRow], column: str, *, descending: bool) -> list[RequestRow]:
    """By a column of `COLUMNS`, equal ones by due time; what is not known comes last either way."""

    def unknown(row: RequestRow) -> bool:
        value = getattr(row, column)
        return isinstance(value, float) and math.isnan(value)

    every = sorted(rows, key=lambda row: (row.due, row.id), reverse=descending)
    known = [row for row in every if not unknown(row)]
    known.sort(key=lambda row: getattr(row, column), reverse=descending)
    return known + [row for row in every if unknown(row)]


def bar(record: RequestRecord, axis: tuple[float, float], width: int, *, at: float) -> list[Run]:
    """The phases of a request on a time axis of `width` cells, up to the instant `at`; at least one cell."""
    start, end = axis
    scale = width / (end - start)

    def column(instant: float) -> int:
        return min(max(int((min(instant, at) - start) * scale), 0), width)

    sent = ended_at(record) if record.sent is None else record.sent
    first = ended_at(record) if record.first_token_at is None else record.first_token_at
    edges = [column(each) for each in (record.due, sent, first, ended_at(record))]
    if edges[3] == edges[0]:  # at least one cell, of the phase that it is in
        edges[0] = min(edges[0], width - 1)
        reached = 1 + sum(instant <= at for instant in (sent, first))
        edges[reached:] = [edges[0] + 1] * (4 - reached)
    runs: list[Run] = [(" " * edges[0], "")]
    for (glyph, style, _), low, high in zip(PHASES, edges, edges[1:], strict=False):
        runs.append((glyph * (high - low), style))
    failed = ended_at(record) <= at and record.status is not RequestStatus.OK
    runs.append((("✖" if failed and edges[3] < width else "").ljust(width - edges[3]), "bad" if failed else ""))
    return merged(runs)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
