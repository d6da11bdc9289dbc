"""The phases of a request: what the server reported, stalls and preemptions."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.events import RequestRecord, RequestStatus
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.panels.detail.request_table import header, request_row
from servetop.tui.panels.detail.requests import RequestsPanel
from servetop.tui.state.frame import Frame
from servetop.tui.state.request_phases import spans
from servetop.tui.state.request_rows import RowCache, bar, row_of

FrameOf = Callable[..., Frame]
TIMES = np.array([12.0, 12.1, 12.2, 14.2, 14.3, 14.4])
STALLED = RequestRecord(
    id=7, stage=0, due=10.0, sent=11.0, first_token_at=12.0, done_at=14.5, prompt_tokens=100, output_tokens=6,
    status=RequestStatus.OK, chunk_times=TIMES, chunk_tokens=np.ones(6, dtype=int),
)  # fmt: skip


def counted(start: float, until: float) -> float:
    """An engine that preempted once, at 13.0 s."""
    return float(start <= 13.0 <= until)


def phases(record: RequestRecord, at: float, **options: Callable[[float, float], float]) -> list[tuple[str, float]]:
    return [(each.phase.name, round(each.seconds, 3)) for each in spans(record, at, **options)]


def test_a_gap_of_many_times_the_median_is_a_stall_and_preempted_if_the_counter_rose() -> None:
    before = [("queued", 1.0), ("to first token", 1.0), ("decode", 0.2)]
    assert phases(STALLED, 20.0) == [*before, ("stall", 2.0), ("decode", 0.3)]
    assert phases(STALLED, 20.0, preemptions=counted) == [*before, ("preempted", 2.0), ("decode", 0.3)]
    row = row_of(STALLED, 20.0, preemptions=counted)
    assert (round(row.stalled, 3), row.preempted) == (2.0, True)


def test_a_short_or_usual_gap_is_no_stall() -> None:
    quick = replace(STALLED, chunk_times=np.array([12.0, 12.01, 12.02, 12.25, 12.26, 12.27]), done_at=12.3)
    slow = replace(STALLED, chunk_times=np.array([12.0, 13.0, 14.0, 15.0, 16.0, 17.0]), done_at=17.5)
    for record in (quick, slow):
        assert math.isnan(row_of(record, 20.0).stalled)
        assert "stall" not in dict(phases(record, 20.0))


def test_a_stall_is_seen_while_it_lasts_and_nothing_of_what_follows() -> None:
    assert phases(STALLED, 13.2)[-1] == ("stall", 1.0)
    assert phases(STALLED, 12.5)[-1] == ("decode", 0.5)
    assert row_of(STALLED, 13.2, preemptions=counted).preempted
    assert not row_of(STALLED, 12.9, preemptions=counted).preempted


def test_queue_and_prefill_of_the_server_are_known_when_the_request_has_ended() -> None:
    timed = replace(STALLED, server_queue=0.5, server_prefill=0.25)
    assert phases(timed, 20.0)[1:4] == [("engine queue", 0.5), ("prefill", 0.25), ("to first token", 0.25)]
    assert phases(timed, 13.0)[1] == ("to first token", 1.0)


def test_the_bar_tells_decode_stall_and_preemption_apart_by_their_glyphs() -> None:
    def drawn(width: int, **options: Callable[[float, float], float]) -> str:
        return Lines([bar(row_of(STALLED, 20.0, **options).spans, (10.0, 15.0), width)]).plain

    assert re.fullmatch("╌{5}░{5}█?╍{10}█+ +", drawn(25))
    assert re.fullmatch("╌{5}░{5}█?▚{10}█+ +", drawn(25, preemptions=counted))


def test_a_stall_shorter_than_a_cell_is_still_drawn() -> None:
    times = np.concatenate((np.arange(12.0, 14.0, 0.02), np.arange(14.6, 18.0, 0.02)))
    record = replace(STALLED, chunk_times=times, chunk_tokens=np.ones(times.size, dtype=int), done_at=18.0)
    assert Lines([bar(row_of(record, 20.0).spans, (0.0, 60.0), 60)]).plain.count("╍") == 1


def test_the_row_of_a_preempted_request_has_a_mark_beside_its_stall() -> None:
    axis = (10.0, 15.0)
    head = Lines([header(120, axis, order="due", descending=True)]).plain
    for options, mark in (({}, "╍"), ({"preemptions": counted}, "▚")):
        drawn = Lines([request_row(row_of(STALLED, 20.0, **options), 120, axis, chosen=False)]).plain
        assert f"{mark} 2.00 s" in drawn
        assert drawn.index("2.00 s") + 6 == head.index("stall") + 5
    quiet = request_row(row_of(STALLED, 12.1), 120, axis, chosen=False)
    assert row_width(quiet) == 120


def test_rows_are_cached_when_the_counters_of_their_end_are_known() -> None:
    cache = RowCache()
    (early,) = cache.rows([STALLED], 14.6)
    (late,) = cache.rows([STALLED], 17.0, preemptions=counted)
    assert (early.preempted, late.preempted) == (False, True)
    assert cache.rows([STALLED], 18.0)[0] is late


@given(st.lists(st.floats(0, 3), max_size=12), st.floats(8, 40))
def test_phases_follow_each_other_up_to_the_time(gaps: list[float], at: float) -> None:
    times = 12.0 + np.cumsum([0.0, *gaps])
    record = replace(STALLED, chunk_times=times, chunk_tokens=np.ones(times.size, dtype=int), done_at=times[-1] + 0.1)
    found = spans(record, max(at, 10.0))
    assert found[0].start == 10.0
    assert all(one.end == other.start for one, other in itertools.pairwise(found))
    assert found[-1].end == min(max(at, 10.0), record.done_at or 0.0)


def test_preemptions_are_counted_in_the_ticks_of_a_gap(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 126.0)
    assert frame.preemptions(0.0, 126.0) > 0
    assert frame.preemptions(10.0, 20.0) == 0
    assert math.isnan(frame_of(canned.without_metrics(), 60.0).preemptions(10.0, 20.0))


async def test_the_title_counts_preempted_requests_and_the_bottom_edge_names_the_phases(
    canned: ModuleType, dashboard: Callable[..., DashboardApp]
) -> None:
    run = canned.finished()
    shift = 100.0 - STALLED.due
    moved = replace(
        STALLED, due=100.0, sent=101.0, first_token_at=102.0, done_at=104.5, chunk_times=STALLED.chunk_times + shift
    )
    run.records = [moved]
    app = dashboard(run, start_at=108.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("2")
        panel = app.screen.query_one(RequestsPanel)
        assert "▚ 1 preempted" in str(panel._border_title)
        assert "██ decode  ╍╍ stall  ▚▚ preempted" in str(panel._border_subtitle)
