"""The charts of the overview: load, KV usage, queue and preemptions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from servetop.core.clock import ManualClock
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.events import Note, Severity
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.charts import Axes
from servetop.tui.drawing.cursor import Cursor
from servetop.tui.drawing.text_runs import Lines, TextRow
from servetop.tui.panels.live.kv import KvExtras, draw_kv
from servetop.tui.panels.live.load import LoadPanel, draw_load
from servetop.tui.panels.live.preemptions import draw_preemptions
from servetop.tui.panels.live.queue import draw_queue
from servetop.tui.panels.live.throughput import ThroughputPanel, draw_throughput
from servetop.tui.state.availability import why_outdated
from servetop.tui.state.frame import Frame

FrameOf = Callable[..., Frame]


def text(rows: list[TextRow]) -> str:
    return Lines(rows).plain


def test_kv_usage_has_the_colour_of_its_own_time(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 122.0)
    for height in (3, 9):
        rows = draw_kv(frame.stats, replace(Axes(window=frame.window, limit=1.0), smallest_step=1.0), 60, height)
        styles = {style for row in rows[1:] for run, style in row if run.strip(" ┊│╵:0123456789%┤")}
        assert {"sky", "vermilion"} <= styles, height
    quiet = frame_of(canned.finished(), 60.0)
    rows = draw_kv(quiet.stats, Axes(window=quiet.window, limit=1.0), 60, 9)
    assert "vermilion" not in {style for row in rows for _, style in row}


def test_an_asked_hit_rate_is_beside_the_counted_one(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 60.0)
    axes = Axes(window=frame.window, limit=1.0)
    extras = KvExtras(wanted_hits=0.6)
    assert ", run 31.0 %, of 60.0 % wanted" in text(draw_kv(frame.stats, axes, 100, 9, extras=extras))
    assert "wanted" not in text(draw_kv(frame.stats, axes, 100, 9))


def test_the_bars_of_the_queue_are_orange_only_while_requests_wait(canned: ModuleType, frame_of: FrameOf) -> None:
    for at, styles in ((50.0, {"sky"}), (122.0, {"sky", "orange"})):
        frame = frame_of(canned.finished(), at)
        rows = draw_queue(frame.stats, Axes(window=frame.window, limit=150.0), (40, 2))
        assert {style for row in rows for run, style in row if run.strip()} == styles


def test_the_load_has_the_target_and_the_smoothed_rate_and_what_was_held_back(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    frame = frame_of(canned.finished(), 110.0)
    rows = draw_load(frame.stats, Axes(window=frame.window, limit=25.0), 90, 12)
    assert text(rows[:1]).startswith("⠤⠤⠤ done  ⠤⠤⠄ target  in flight")
    assert {"sky", "orange", "faint"} <= {style for row in rows[1:-1] for _, style in row}
    held = replace(frame.stats.series.smoothed["sent"], mean=frame.stats.series.smoothed["sent"].mean * 0.5)
    series = replace(frame.stats.series, smoothed={**frame.stats.series.smoothed, "sent": held})
    rows = draw_load(replace(frame.stats, series=series), Axes(window=frame.window, limit=25.0), 90, 12)
    assert text(rows[:1]).startswith("⠤⠤⠤ done  ⠄⠄⠄ sent  ⠤⠤⠄ target")


def test_a_burst_of_completions_is_marked_and_does_not_set_the_scale(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.ticks = [replace(tick, client=replace(tick.client, ok=120)) if tick.end == 60.0 else tick for tick in run.ticks]
    frame = frame_of(run, 100.0)
    panel = LoadPanel()
    assert panel.peak(frame) < 40
    assert "▲ 12" in text(draw_load(frame.stats, Axes(window=frame.window, limit=40.0), 90, 12))


def test_throughput_is_the_mean_of_five_seconds(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.ticks = [
        replace(tick, client=replace(tick.client, output_tokens=200 * (number % 2)), engine=None)
        for number, tick in enumerate(run.ticks)
    ]
    frame = frame_of(run, 24.0)
    assert frame.stats.series.output_tokens.max() == 800.0
    assert ThroughputPanel().peak(frame) == 400.0
    rows = draw_throughput(frame.stats, Axes(window=(0.0, 30.0), limit=800.0), 90, 12)
    drawn = [y for y, row in enumerate(text(rows[2:-1]).split("\n")) if row[30:60].strip("│┊ ")]
    assert len(drawn) == 1


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_with_a_price_the_throughput_has_what_a_million_tokens_cost(
    size: tuple[int, int],
    canned: ModuleType,
    dashboard: Callable[..., DashboardApp],
    text_of: Callable[[DashboardApp, str], str],
) -> None:
    run = canned.finished()
    run.config = replace(run.config, prices=("$2.5/h",))
    app = dashboard(run, start_at=60.0)
    async with app.run_test(size=size):
        rates = app.viewer.frame().stats.rates
        cost = 2.5 / 3600 / (rates.prompt_tokens + rates.output_tokens) * 1e6
        assert f"${cost:.3f}/Mtok" in text_of(app, "#throughput")


def test_a_closed_loop_shows_requests_in_flight_and_their_limit(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    users = {"request_rate": math.inf, "max_concurrency": 150}
    run.ticks = [
        replace(tick, client=replace(tick.client, gauges=replace(tick.client.gauges, **users))) for tick in run.ticks
    ]
    frame = frame_of(run, 100.0)
    panel = LoadPanel()
    assert "".join(run_text for part in panel.title(frame) for run_text, _ in part).startswith(
        "Load 114 of 150 in flight"
    )
    assert panel.peak(frame) == pytest.approx(165)
    rows = draw_load(frame.stats, Axes(window=frame.window, limit=150.0), 90, 12)
    assert text(rows[:1]).startswith("⠤⠤⠤ in flight  ⠤⠤⠄ limit  queued")


def test_preemptions_have_no_axis_until_there_was_one(canned: ModuleType, frame_of: FrameOf) -> None:
    quiet = frame_of(canned.finished(), 60.0)
    assert text(draw_preemptions(quiet.stats, Axes(window=quiet.window, limit=1.0), (40, 6))).strip() == "✓ none so far"
    before = frame_of(canned.finished(), 120.0, cursor=Cursor(at=60.0))
    assert "┤" in text(draw_preemptions(before.stats, Axes(window=before.window, limit=20.0), (40, 6)))


def test_an_engine_that_restarts_or_is_not_sampled_shows_no_values_of_before(
    canned: ModuleType, frame_of: FrameOf
) -> None:
    def lost(at: float, **changes: Any) -> str:
        run = canned.finished()
        run.ticks = [replace(tick, engine=tick.engine if tick.end <= 56.6 else None) for tick in run.ticks]
        for name, value in changes.items():
            setattr(run, name, value)
        return why_outdated(frame_of(run, 90.0 if at < 60 else at, cursor=Cursor(at=at)))

    every_ten_seconds = [
        replace(tick, engine=tick.engine if tick.end % 10 == 0 else None) for tick in canned.finished().ticks
    ]
    assert lost(79.0, ticks=every_ten_seconds) == ""
    restart = "max_num_seqs 192 → 96: restarting the engine"
    noted = [Note(at=56.0, severity=Severity.INFO, source="engine", text=restart)]
    first, *loaded = canned.stage_changes()
    assert lost(57.0) == ""
    assert lost(60.0) == "⚠ no sample for 3.51 s"
    watched = replace(canned.finished().config, watch=WatchConfig())
    gap = [
        replace(tick, engine=tick.engine if tick.end % 1 == 0 and not 56.0 < tick.end < 60.0 else None)
        for tick in canned.finished().ticks
    ]
    assert lost(58.5, ticks=gap).startswith("⚠ no sample for 2.5")
    assert lost(58.5, ticks=gap, config=watched) == "", "one of a watched server may be late"
    assert lost(59.5, ticks=gap, config=watched).startswith("⚠ no sample for 3.5")
    assert lost(60.0, notes=noted) == "⚠ engine restarting"
    assert lost(57.0, notes=noted) == ""
    assert lost(60.0, stages=[first, *loaded[:2], replace(first, at=58.0)]) == "⚠ engine restarting"


async def test_panels_of_a_lost_engine_keep_their_history_and_lose_their_values(
    canned: ModuleType, dashboard: Callable[..., DashboardApp], text_of: Callable[[DashboardApp, str], str]
) -> None:
    run = canned.finished()
    run.ticks = [replace(tick, engine=tick.engine if tick.end <= 108.0 else None) for tick in run.ticks]
    async with (app := dashboard(run, start_at=112.0)).run_test(size=(160, 48)):
        for name in ("kv", "queue", "preemptions"):
            title, *rows = text_of(app, f"#{name}").split("\n")
            assert title.endswith("⚠ no sample for 4.01 s"), name
            assert any("⣿" in row or "█" in row for row in rows), name
        assert "used" not in text_of(app, "#kv")
        assert not app.screen.query_one("#kv").has_class("-full")


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (80, 40)])
async def test_narrow_panels_show_each_value_once_and_none_of_a_lost_engine(
    canned: ModuleType, dashboard: Callable[..., DashboardApp], text_of: Callable[[DashboardApp, str], str],
    size: tuple[int, int],
) -> None:  # fmt: skip
    async with (app := dashboard(canned.finished(), start_at=112.0)).run_test(size=size):
        queue, preemptions = text_of(app, "#queue"), text_of(app, "#preemptions")
        assert queue.count("run") == queue.count("wait") == 1
        assert preemptions.count("/s") == preemptions.count("Σ") == 1
    run = canned.finished()
    run.ticks = [replace(tick, engine=tick.engine if tick.end <= 108.0 else None) for tick in run.ticks]
    async with (app := dashboard(run, start_at=112.0)).run_test(size=size):
        for name in ("kv", "queue", "preemptions"):
            shown = text_of(app, f"#{name}")
            assert shown.count("⚠ no sample for") == 1, name
            assert not any(word in shown for word in ("run", "wait", "/s", "Σ", "▲")), name


@pytest.mark.parametrize(
    ("size", "legend"), [((80, 24), ""), ((120, 40), "⠄ 1 s range"), ((160, 48), "⠄ 1 s"), ((220, 60), "⠄ 1 s range")]
)
async def test_the_title_of_the_load_says_what_the_dotted_lines_of_its_chart_are(
    size: tuple[int, int], legend: str, canned: ModuleType
) -> None:
    app = DashboardApp(canned.growing(100.0), clock=ManualClock())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        panel = app.screen.query_one(LoadPanel)
        assert panel.frame is not None
        parts = ["".join(run for run, _ in part) for part in panel.title(panel.frame)]
        assert parts[2:] == ([legend] if legend else [])
