"""Requests as rows of a table: what is known of each at a time, their order, and their phases as a bar."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from servetop.core.events import RequestRecord, RequestStatus
from servetop.tui.drawing.text_runs import Run, merged
from servetop.tui.state.frame import View

COLUMNS = ("due", "ttft", "itl", "itl_max", "e2el", "prompt_tokens", "output_tokens", "status", "id")
"""Columns that rows can be sorted by, in the order of the sort key."""
_CELLS = 60
"""Approximate cells of the heat map's time axis."""
PHASES = (("╌", "muted", "queued"), ("░", "orange", "to first token"), ("█", "sky", "decode"))
"""Glyph, style and name of each phase: due → sent, sent → first token, first token → end."""


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
    e2el: float
    prompt_tokens: int
    output_tokens: int
    status: str
    failed: bool


def row_of(record: RequestRecord, at: float) -> RequestRow:
    """The row of a request at `at`: if it was in flight then, from the chunks received so far."""
    seen = int(np.searchsorted(record.chunk_times, at, side="right"))
    times, tokens = record.chunk_times[:seen], record.chunk_tokens[:seen]
    later = int(tokens[1:].sum())
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
        e2el=_or_nan(record.e2el) if over else math.nan,
        prompt_tokens=record.prompt_tokens,
        output_tokens=record.output_tokens if over else int(tokens.sum()),
        status=("" if record.status is RequestStatus.OK else "✖ ") + record.status.value if over else under_way,
        failed=over and record.status is not RequestStatus.OK,
    )


class RowCache:
    """Caches the rows of finished requests, because they no longer change."""

    def __init__(self) -> None:
        self._over: Mapping[int, RequestRow] = {}

    def rows(self, records: Iterable[RequestRecord], at: float) -> list[RequestRow]:
        """The rows at a time; drops cached rows of requests that are not in `records`."""
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
    """The id of the row nearest to the heat map cell that the cursor was set on, else `otherwise`.

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
    """The seconds of a request that the heat map of a metric counts: TTFT from due; NaN if not known yet."""
    if metric == "ttft" and row.record.sent is not None:
        return row.ttft + row.record.sent - row.record.due
    if metric == "tpot":
        return math.nan if math.isnan(row.e2el) else _or_nan(row.record.tpot)
    return float(getattr(row, metric))


def ended_at(record: RequestRecord) -> float:
    """The end of a request, or the last known time of one without an end; seconds."""
    known = (record.done_at, record.first_token_at, record.sent, record.due)
    return next(at for at in known if at is not None)


def ordered(rows: Iterable[RequestRow], column: str, *, descending: bool) -> list[RequestRow]:
    """Sorts by a column of `COLUMNS`, then by due time; rows with an unknown value come last in both directions."""

    def unknown(row: RequestRow) -> bool:
        value = getattr(row, column)
        return isinstance(value, float) and math.isnan(value)

    every = sorted(rows, key=lambda row: (row.due, row.id), reverse=descending)
    known = [row for row in every if not unknown(row)]
    known.sort(key=lambda row: getattr(row, column), reverse=descending)
    return known + [row for row in every if unknown(row)]


def bar(record: RequestRecord, axis: tuple[float, float], width: int, *, at: float) -> list[Run]:
    """Draws the phases of a request on a time axis of `width` cells up to the time `at`; at least one cell."""
    start, end = axis
    scale = width / (end - start)

    def column(time: float) -> int:
        return min(max(int((min(time, at) - start) * scale), 0), width)

    sent = ended_at(record) if record.sent is None else record.sent
    first = ended_at(record) if record.first_token_at is None else record.first_token_at
    edges = [column(each) for each in (record.due, sent, first, ended_at(record))]
    if edges[3] == edges[0]:  # at least one cell, in the current phase
        edges[0] = min(edges[0], width - 1)
        reached = 1 + sum(time <= at for time in (sent, first))
        edges[reached:] = [edges[0] + 1] * (4 - reached)
    runs: list[Run] = [(" " * edges[0], "")]
    for (glyph, style, _), low, high in zip(PHASES, edges, edges[1:], strict=False):
        runs.append((glyph * (high - low), style))
    failed = ended_at(record) <= at and record.status is not RequestStatus.OK
    runs.append((("✖" if failed and edges[3] < width else "").ljust(width - edges[3]), "bad" if failed else ""))
    return merged(runs)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
