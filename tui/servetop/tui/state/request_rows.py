"""Requests as rows of a table: what is known of each at a time, their order, and their phases as a bar."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.events import RequestRecord, RequestStatus
from servetop.tui.drawing.text_runs import Run, merged
from servetop.tui.state.frame import View
from servetop.tui.state.request_phases import (
    PREEMPTED,
    STALL,
    Preemptions,
    Span,
    ended_at,
    spans,
    unknown_preemptions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """A request as of a time, in seconds and tokens; NaN is not known yet."""

    record: RequestRecord
    id: int
    due: float
    ttft: float
    itl: float
    """Mean over tokens: time from the first chunk to the last ÷ tokens of all but the first."""
    itl_max: float
    """The longest gap between two chunks."""
    stalled: float
    """The sum of its stalls; NaN without any."""
    preempted: bool
    """The engine preempted requests during one of its stalls."""
    spans: tuple[Span, ...]
    """Its phases up to the time of the row."""
    e2el: float
    prompt_tokens: int
    output_tokens: int
    status: str
    failed: bool


COLUMNS = ("due", "ttft", "itl", "itl_max", "stalled", "e2el", "prompt_tokens", "output_tokens", "status", "id")
"""Columns that rows can be sorted by, in the order of the sort key."""
_CELLS = 60
"""Approximate cells of the heat map's time axis."""
_SETTLED = 2.0
"""Seconds after its end from which on a row with stalls no longer changes: the engine's counters are read late."""


def row_of(record: RequestRecord, at: float, *, preemptions: Preemptions = unknown_preemptions) -> RequestRow:
    """Return the row of a request at `at`: if it was in flight then, from the chunks received so far."""
    phases = spans(record, at, preemptions=preemptions)
    stalls = [each for each in phases if each.phase in (STALL, PREEMPTED)]
    started = record.chunk_times.size > 0 and record.chunk_times[0] <= at
    seen = int(np.searchsorted(record.chunk_times, at, side="right")) if started else 0
    times, received = record.chunk_times[:seen], int(record.chunk_tokens[:seen].sum()) if started else 0
    later = received - int(record.chunk_tokens[0]) if started else 0
    over = ended_at(record) <= at
    decoding = record.first_token_at is not None and record.first_token_at <= at
    under_way = "… decode" if decoding else "… waiting"
    return RequestRow(
        record=record,
        id=record.id,
        due=record.due,
        ttft=_or_nan(record.ttft) if decoding else math.nan,
        itl=float(times[-1] - times[0]) / later if later else math.nan,
        itl_max=float(np.diff(times).max()) if times.size > 1 else math.nan,
        stalled=sum(each.seconds for each in stalls) if stalls else math.nan,
        preempted=any(each.phase is PREEMPTED for each in stalls),
        spans=tuple(phases),
        e2el=_or_nan(record.e2el) if over else math.nan,
        prompt_tokens=record.prompt_tokens,
        output_tokens=record.output_tokens if over else received,
        status=("" if record.status is RequestStatus.OK else "✖ ") + record.status.value if over else under_way,
        failed=has_failed(record, at),
    )


def has_failed(record: RequestRecord, at: float) -> bool:
    """Whether a request has ended by `at`, and not successfully."""
    return ended_at(record) <= at and record.status is not RequestStatus.OK


class RowCache:
    """Caches the rows of finished requests that no longer change."""

    def __init__(self) -> None:
        self._over: Mapping[int, RequestRow] = {}

    def rows(
        self, records: Iterable[RequestRecord], at: float, *, preemptions: Preemptions = unknown_preemptions
    ) -> list[RequestRow]:
        """Return the rows at a time; drops cached rows of requests that are not in `records`."""
        before, over = self._over, {}
        found = []
        for record in records:
            row = before.get(record.id)
            if row is None or not _is_settled(row, at):
                row = row_of(record, at, preemptions=preemptions)
            if _is_settled(row, at):
                over[record.id] = row
            found.append(row)
        self._over = over
        return found


def _is_settled(row: RequestRow, at: float) -> bool:
    """Whether a request has ended by `at`, and all preemptions during its stalls are known."""
    return ended_at(row.record) + (0.0 if math.isnan(row.stalled) else _SETTLED) <= at


def pointed_at(
    rows: Iterable[RequestRow], view: View, *, window: tuple[float, float], otherwise: int | None
) -> int | None:
    """Return the id of the row nearest to the heat map cell that the cursor was set on, else `otherwise`.

    Nearest is the smallest ratio of latencies, preferring rows whose first token arrived within one cell's time.
    """
    cursor, metric = view.cursor, view.metric
    known = [row for row in rows if charted_value(row, metric) > 0]
    if cursor is None or cursor.latency is None or not known:
        return otherwise
    at, latency, within = cursor.at, cursor.latency, (window[1] - window[0]) / _CELLS

    def distance(row: RequestRow) -> tuple[bool, float]:
        first = row.record.first_token_at
        return first is None or abs(at - first) > within, abs(math.log(charted_value(row, metric) / latency))

    return min(known, key=distance).id


def charted_value(row: RequestRow, metric: str) -> float:
    """Return the seconds of a request that the heat map of a metric counts: TTFT from due; NaN if not known yet."""
    if metric == "ttft" and row.record.sent is not None:
        return row.ttft + row.record.sent - row.record.due
    if metric == "tpot":
        return math.nan if math.isnan(row.e2el) else _or_nan(row.record.tpot)
    return float(getattr(row, metric))


def ordered(rows: Iterable[RequestRow], column: str, *, descending: bool) -> list[RequestRow]:
    """Sorts by a column of `COLUMNS`, then by due time; rows with an unknown value come last in both directions."""

    def unknown(row: RequestRow) -> bool:
        value = getattr(row, column)
        return isinstance(value, float) and math.isnan(value)

    every = sorted(rows, key=lambda row: (row.due, row.id), reverse=descending)
    known = [row for row in every if not unknown(row)]
    known.sort(key=lambda row: getattr(row, column), reverse=descending)
    return known + [row for row in every if unknown(row)]


def bar(phases: Sequence[Span], axis: tuple[float, float], width: int, *, failed: bool = False) -> list[Run]:
    """Draws phases on a time axis of `width` cells, the whole and each stall in at least one; `✖` ends a failure."""
    start, end = axis
    scale = width / (end - start)

    def column(time: float) -> int:
        return min(max(int((time - start) * scale), 0), width)

    cells: list[Run] = [(" ", "")] * width
    for each in phases:
        low, high = column(each.start), column(each.end)
        if each is phases[-1] and high == column(phases[0].start):  # at least one cell, in the current phase
            low = min(low, width - 1)
            high = low + 1
        elif each.phase in (STALL, PREEMPTED) and low == high and 0 < low < width:
            low = high - 1
        cells[low:high] = [(each.phase.glyph, each.phase.style)] * (high - low)
    used = max((number + 1 for number, (glyph, _) in enumerate(cells) if glyph != " "), default=0)
    if failed:
        cells[min(used, width - 1)] = ("✖", "bad")
    return merged(cells)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
