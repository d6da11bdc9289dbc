"""The TTFT breakdown panel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from servetop.analysis.ttft_breakdown import TtftBreakdown
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.panels.live.ttft import TtftPanel, draw_ttft, ttft_note
from servetop.tui.state.frame import Frame

FrameOf = Callable[..., Frame]
PARTS = TtftBreakdown(
    total=1.0, client_queue=0.25, network=0.05, engine_queue=0.5, prefill=0.1, unexplained=0.1, requests=40
)


def test_the_bar_shows_each_part_by_its_share_and_texture() -> None:
    bar, *legend = Lines(draw_ttft(PARTS, 100, 4)).plain.split("\n")
    assert [bar.count(texture) for texture in "▓░█▒╱"] == [25, 5, 50, 10, 10]
    assert " ".join(legend[0].split()).startswith("▓▓ client queue 250 ms ░░ network 50.0 ms ██ engine queue 500 ms")


def test_an_unknown_part_has_no_value_and_no_share() -> None:
    unknown = replace(PARTS, network=math.nan, engine_queue=math.nan, prefill=math.nan, unexplained=0.75)
    shown = Lines(draw_ttft(unknown, 40, 6)).plain
    assert shown.split("\n")[0] == "▓" * 10 + "╱" * 30
    assert shown.count("–") == 3


def test_the_rest_is_not_known_yet_while_requests_wait_for_their_first_token() -> None:
    waiting = replace(PARTS, pending=200, pending_age=6.25)
    shown = Lines(draw_ttft(waiting, 108, 4)).plain
    assert "not known yet  100 ms" in shown
    assert shown.split("\n")[-1] == "200 requests without a first token, 6.25 s so far"
    assert Lines(draw_ttft(waiting, 52, 4)).plain.endswith("╱╱ not known yet  100 ms 200 without token 6.25 s")
    for idle in (PARTS, replace(PARTS, pending=1, pending_age=0.0)):
        assert "unexplained" in Lines(draw_ttft(idle, 108, 4)).plain


def test_requests_that_wait_are_counted_even_if_no_first_token_came(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 60.0)
    stuck = replace(frame.stats, ttft=TtftBreakdown(pending=1, pending_age=12.0))
    rows = TtftPanel().draw(replace(frame, stats=stuck), 80, 3)
    assert "no first token in the window: 1 request without a first token, 12.0 s so far" in Lines(rows).plain


def test_queue_and_prefill_that_are_not_separated_are_one_part(canned: ModuleType, frame_of: FrameOf) -> None:
    whole = replace(PARTS, engine_queue=math.nan, prefill=math.nan, at_engine=0.6)
    bar, legend, *_ = Lines(draw_ttft(whole, 100, 4)).plain.split("\n")
    assert [bar.count(texture) for texture in "▓░█▒╱"] == [25, 5, 60, 0, 10]
    assert "██ queue, prefill  600 ms" in legend
    growing = frame_of(canned.finished(), 104.0)
    changing = replace(growing, stats=replace(growing.stats, ttft=whole))
    assert ttft_note(changing, 40) == "▲ queue and prefill not separated"


@pytest.mark.parametrize(("width", "height"), [(36, 4), (48, 4), (70, 2), (20, 6), (8, 1), (108, 3)])
def test_the_panel_stays_in_its_box(width: int, height: int) -> None:
    rows = draw_ttft(PARTS, width, height)
    assert len(rows) <= height
    assert max(row_width(row) for row in rows) <= width


def test_an_engine_without_these_times_is_named(canned: ModuleType, frame_of: FrameOf) -> None:
    assert ttft_note(frame_of(canned.without_metrics(), 60.0), 40) == "queue, prefill: not exported by TGI"
    assert ttft_note(frame_of(canned.finished(), 50.0), 40) == ""
    growing = frame_of(canned.finished(), 104.0)
    estimated = replace(growing, stats=replace(growing.stats, ttft=replace(PARTS, queue_from=200.0)))
    none = replace(growing, stats=replace(growing.stats, ttft=replace(PARTS, queue_from=0.2)))
    assert "waiting" not in ttft_note(none, 48)
    assert ttft_note(estimated, 48) == "queue estimated from 200 waiting on average"
    assert ttft_note(estimated, 36) == "queue estimated from 200 waiting"
    assert ttft_note(estimated, 28) == "queue est. from 200 waiting"
