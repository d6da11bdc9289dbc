"""The header: what runs, at which stage, and whether it is live."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from servetop.core.text import formats
from servetop.tui.drawing.text_runs import Lines, TextRow, row_width
from servetop.tui.panels.header import draw_header
from servetop.tui.state.frame import Frame
from servetop.tui.state.playhead import Playhead

if TYPE_CHECKING:
    from tests.tui.canned import CannedRun

FrameOf = Callable[..., Frame]


def text(rows: list[TextRow]) -> str:
    return Lines(rows).plain


def test_the_header_shows_engine_stage_and_that_it_records(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.growing(110.0), 110.0)
    following = replace(frame, view=replace(frame.view, playhead=Playhead(at=110.0, following=True)))
    header = text([draw_header(following, 120)])
    assert header.startswith("servetop ▸ simulator · llama-2-7b · H200")
    assert header.endswith("stage 4/4 20 req/s · batch 192  00:01:50 ● REC")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_header_says_that_a_run_is_predicted_or_imported(canned: ModuleType, frame_of: FrameOf, width: int) -> None:
    frame = frame_of(canned.finished(), 126.0)
    predicted = replace(frame, header=replace(frame.header, predicted=True))
    assert "predicted " in text([draw_header(predicted, width)])
    assert "predicted" not in text([draw_header(frame, width)])
    imported = replace(frame, header=replace(frame.header, manifest={"imported": {"tool": "vLLM bench"}}))
    assert "imported " in text([draw_header(imported, width)])


@pytest.mark.parametrize("width", [100, 200])
def test_a_model_in_a_local_folder_has_the_same_name_at_every_width(
    canned: ModuleType, frame_of: FrameOf, width: int
) -> None:
    frame = frame_of(canned.growing(110.0), 110.0)
    assert frame.engine is not None
    local = replace(frame.engine, model="/srv/models/tiny-llama/")
    shown = text([draw_header(replace(frame, header=replace(frame.header, engine=local)), width)])
    assert shown.startswith("servetop ▸ simulator · tiny-llama ")


@pytest.mark.parametrize(
    ("playhead", "shown"),
    [
        (Playhead(at=60.0), "▶ replay ×1"),
        (Playhead(at=60.0, speed=4.0, playing=False), "‖ replay ×4"),
        (Playhead(at=126.0), "■ ended"),
    ],
)
def test_the_header_shows_the_playback_of_a_finished_run(
    canned: ModuleType, frame_of: FrameOf, playhead: Playhead, shown: str
) -> None:
    frame = frame_of(canned.finished(), playhead.at)
    assert text([draw_header(replace(frame, view=replace(frame.view, playhead=playhead)), 120)]).endswith(shown)


def test_the_header_shows_the_distance_from_the_live_edge(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.growing(110.0), 98.0)
    assert text([draw_header(frame, 120)]).endswith("▶ ×1 −0:12")


def test_a_run_without_an_end_broke_off(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.end = None
    assert text([draw_header(frame_of(run, 126.0), 120)]).endswith("■ broke off")


def test_held_and_paused_loads_are_marked(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 60.0)
    held = replace(frame, stats=replace(frame.stats, load=replace(frame.stats.load, holding=True)))
    paused = replace(frame, stats=replace(frame.stats, load=replace(frame.stats.load, paused=True)))
    assert "8 req/s · batch 192 ‖ held" in text([draw_header(held, 120)])
    assert "8 req/s · batch 192 ‖ load paused" in text([draw_header(paused, 120)])


def test_the_header_shows_a_rate_that_differs_from_its_stage(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 60.0)
    steered = replace(frame, stats=replace(frame.stats, load=replace(frame.stats.load, request_rate=8.82)))
    assert "8 req/s · batch 192 → 8.82 req/s" in text([draw_header(steered, 120)])


def test_a_narrow_header_keeps_the_batch_size_of_a_ramp(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.stages = [replace(stage, label="4 to 8 req/s") for stage in run.stages]
    frame = frame_of(run, 60.0)
    steered = replace(frame, stats=replace(frame.stats, load=replace(frame.stats.load, request_rate=7.94)))
    assert "  4 to 8 req/s → 7.94 · batch 192  00:" in text([draw_header(steered, 62)])
    assert "  2/4 4 to 8 req/s → 7.94 req/s · batch 192  00:" in text([draw_header(steered, 90)])


@pytest.mark.parametrize(("limit", "shown"), [(17, "closed loop, 17 concurrent"), (None, "closed loop")])
def test_the_header_names_a_closed_loop(canned: ModuleType, frame_of: FrameOf, limit: int | None, shown: str) -> None:
    frame = frame_of(canned.finished(), 60.0)
    gauges = replace(frame.stats.load, request_rate=math.inf, max_concurrency=limit)
    assert f"8 req/s · batch 192 → {shown}  " in text(
        [draw_header(replace(frame, stats=replace(frame.stats, load=gauges)), 120)]
    )


@pytest.mark.parametrize(("width", "shown"), [(120, "  stage 2 8 req/s"), (58, "  8 req/s")])
def test_the_number_of_an_unplanned_stage_has_the_word_before_it(
    canned: ModuleType, frame_of: FrameOf, width: int, shown: str
) -> None:
    run = canned.finished()
    run.config = replace(run.config, stages=run.config.stages[:1])
    assert shown in text([draw_header(frame_of(run, 60.0), width)])


def test_the_header_shows_the_batch_size_in_force(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 60.0)
    assert frame.stats.engine is not None
    changed = replace(frame, stats=replace(frame.stats, engine=replace(frame.stats.engine, max_num_seqs=224)))
    assert "8 req/s · batch 192 → batch 224" in text([draw_header(changed, 120)])
    run = canned.finished()
    run.stages = [replace(stage, label="8 req/s", max_num_seqs=None) for stage in run.stages]
    assert "8 req/s · batch 192  00:01:00" in text([draw_header(frame_of(run, 60.0), 120)])
    run = canned.finished()
    run.stages = [replace(stage, label="8 req/s", max_num_seqs=None) for stage in run.stages]
    run.ticks = [replace(tick, engine=None) for tick in run.ticks]
    assert "8 req/s  00:01:00" in text([draw_header(frame_of(run, 60.0), 120)])


def judged(canned: ModuleType, *, good: int | None, good_due: int | None) -> CannedRun:
    """A run with an objective of which `good` of ten requests per tick met it, and from due `good_due`."""
    run: CannedRun = canned.finished()
    run.config = replace(run.config, goodput={"ttft": 0.5})
    run.ticks = [
        replace(tick, client=replace(tick.client, ok=10, good=good, good_due=good_due if tick.end > 30 else good))
        for tick in run.ticks
    ]
    return run


def test_the_header_shows_the_objectives_of_the_window_and_of_the_run(canned: ModuleType, frame_of: FrameOf) -> None:
    shown = text([draw_header(frame_of(judged(canned, good=9, good_due=9), 60.0), 160)])
    assert "  SLO 90.0 % · run 90.0 %  00:01:00" in shown
    shown = text([draw_header(frame_of(judged(canned, good=9, good_due=3), 60.0), 160)])
    assert "  SLO as felt 30.0 % · run 60.0 %  00:01:00" in shown
    assert "SLO as felt 30.0 %  00:01:00" in text([draw_header(frame_of(judged(canned, good=9, good_due=3), 60.0), 98)])


def test_at_the_end_of_a_run_the_header_shows_the_share_of_the_whole_run(canned: ModuleType, frame_of: FrameOf) -> None:
    run = judged(canned, good=9, good_due=3)
    assert "SLO as felt 44.2 % of the run" in text([draw_header(frame_of(run, 126.0), 160)])


def test_a_recording_without_these_counts_shows_each_objective(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(judged(canned, good=None, good_due=None), 110.0)
    share = formats.percent(frame.stats.within["ttft"])
    assert f"  TTFT ≤ 500 ms {share}  00:01:50" in text([draw_header(frame, 160)])


def test_without_objectives_the_header_has_none(canned: ModuleType, frame_of: FrameOf) -> None:
    assert "SLO" not in text([draw_header(frame_of(canned.finished(), 60.0), 160)])


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_header_fits_every_terminal_and_never_loses_time_and_state(
    canned: ModuleType, frame_of: FrameOf, width: int
) -> None:
    row = draw_header(frame_of(canned.finished(), 60.0), width)
    assert row_width(row) <= width
    assert text([row]).endswith("00:01:00 ▶ replay ×1")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (
            130,
            "servetop ▸ vLLM 0.9.1 · org/llama-2-7b · H200  stage 2/4 8 req/s · batch 192  SLO 90.0 % · run 90.0 %  ",
        ),
        (118, "servetop ▸ vLLM 0.9.1 · org/llama-2-7b  stage 2/4 8 req/s · batch 192  SLO 90.0 % · run 90.0 %  "),
        (106, "servetop ▸ vLLM 0.9.1 · org/llama-2-7b  stage 2/4 8 req/s · batch 192  SLO 90.0 %  "),
        (98, "servetop ▸ vLLM 0.9.1 · llama-2-7b  2/4 8 req/s · batch 192  SLO 90.0 %  "),
        (90, "servetop ▸ vLLM · llama-2-7b  2/4 8 req/s · batch 192  SLO 90.0 %  "),
        (78, "vLLM · llama-2-7b  2/4 8 req/s · batch 192  SLO 90.0 %  "),
        (68, "vLLM  2/4 8 req/s · batch 192  SLO 90.0 %  "),
        (62, "vLLM  8 req/s · batch 192  SLO 90.0 %  "),
        (54, "vLLM  8 req/s  SLO 90.0 %  "),
        (38, "vLLM  8 req/s  00:"),
        (32, "vLLM  00:"),
    ],
)
def test_the_header_loses_its_least_important_parts_first(
    canned: ModuleType, frame_of: FrameOf, width: int, shown: str
) -> None:
    run = judged(canned, good=9, good_due=9)
    run.stages = [replace(stage, label="8 req/s") for stage in run.stages]
    frame = frame_of(run, 60.0)
    assert frame.engine is not None
    vllm = replace(frame.engine, title="vLLM", version="0.9.1", model="org/llama-2-7b")
    line = text([draw_header(replace(frame, header=replace(frame.header, engine=vllm)), width)])
    assert re.sub(r"  +", "  ", line).startswith(shown), line
