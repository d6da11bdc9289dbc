"""The latency panel: TTFT as felt and as served, all metrics, and objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from servetop.core.histogram import LogHistogram
from servetop.core.tick import Tick
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.charts import Axes
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.panels.live.latency import draw_latency, felt_label
from servetop.tui.state.frame import Frame

FrameOf = Callable[..., Frame]
Dashboard = Callable[..., DashboardApp]
TextOf = Callable[[DashboardApp, str], str]
AXES = Axes(window=(0.0, 60.0), limit=8.0)


def queued(ticks: list[Tick], seconds: float, *, since: float) -> list[Tick]:
    """The same ticks with TTFT from due longer by `seconds`, as behind a concurrency limit."""
    return [
        tick
        if tick.end < since or not tick.client.ttft.buckets.size
        else replace(tick, client=replace(tick.client, ttft_due=LogHistogram.of([tick.client.ttft.mean + seconds] * 3)))
        for tick in ticks
    ]


@pytest.fixture
def limited(canned: ModuleType, frame_of: FrameOf) -> Frame:
    """A frame whose TTFT from due is 5 s longer than that from sent."""
    run = canned.finished()
    run.ticks = queued(run.ticks, 5.0, since=40.0)
    return frame_of(run, 60.0)


def drawn(frame: Frame, width: int, height: int, metric: str = "ttft") -> list[str]:
    return Lines(draw_latency(frame.stats, AXES, (width, height), metric=metric)).plain.split("\n")


def test_both_kinds_of_ttft_are_named_where_they_differ(limited: Frame) -> None:
    rows = drawn(limited, 69, 12)
    assert rows[1].startswith("▸TTFT as felt (from due)       5.")
    assert rows[2].startswith(" TTFT as served (from sent)   ")
    assert rows[2].endswith(" ms")
    assert [row.split()[0] for row in rows[3:6]] == ["TPOT", "ITL", "E2EL"]
    assert drawn(limited, 49, 12)[1].startswith("▸TTFT as felt ")
    assert drawn(limited, 24, 12)[1].startswith("▸felt")
    assert felt_label(limited.stats, "ttft") == "TTFT as felt"
    assert felt_label(limited.stats, "e2el") == "E2EL"


@pytest.mark.parametrize("height", [2, 3, 4, 5, 7, 8, 12, 20])
def test_itl_never_leaves_the_table(limited: Frame, height: int) -> None:
    for objectives in ({}, {"ttft": 0.5}, {"ttft": 0.5, "e2el": 5.0}):
        rows = draw_latency(limited.stats, AXES, (49, height), metric="ttft", objectives=objectives)
        assert " ITL " in Lines(rows).plain


@pytest.mark.parametrize(
    ("queue", "objectives", "labels"),
    [
        (0.015, {}, ["TTFT", "TPOT", "ITL", "E2EL"]),
        (0.015, {"ttft": 0.2}, ["TTFT", "TTFT", "TPOT", "ITL"]),
        (0.015, {"ttft": 0.5}, ["TTFT", "TPOT", "ITL", "E2EL"]),
        (0.08, {}, ["TTFT", "TTFT", "TPOT", "ITL"]),
    ],
)
def test_a_second_ttft_is_shown_where_the_difference_matters(
    canned: ModuleType, frame_of: FrameOf, queue: float, objectives: dict[str, float], labels: list[str]
) -> None:
    run = canned.finished()
    run.ticks = [
        replace(tick, client=replace(tick.client, ttft=LogHistogram.of([0.05] * 3)))
        if tick.client.ttft.buckets.size
        else tick
        for tick in run.ticks
    ]
    run.ticks, run.config = queued(run.ticks, queue, since=0.0), replace(run.config, goodput=objectives)
    rows = drawn(frame_of(run, 60.0), 69, 12)
    assert [row.split()[0].strip("▸") for row in rows[1:5]] == labels


def test_one_ttft_is_enough_where_they_agree(canned: ModuleType, frame_of: FrameOf) -> None:
    frame = frame_of(canned.finished(), 60.0)
    assert [row.split()[0].strip("▸") for row in drawn(frame, 69, 12)[1:5]] == ["TTFT", "TPOT", "ITL", "E2EL"]
    assert felt_label(frame.stats, "ttft") == "TTFT"


def test_the_line_and_the_heat_map_are_those_from_due(limited: Frame) -> None:
    top = Lines(draw_latency(limited.stats, AXES, (69, 14), metric="ttft")[6:10]).plain
    assert top.strip(" │┤8\n")
    assert max(each.percentile(50) for each in limited.heat if each.buckets.size) > 5.0


@pytest.mark.parametrize("height", [3, 4, 5, 7, 8, 9, 12, 20])
@pytest.mark.parametrize("width", [20, 36, 49, 69])
def test_the_charted_metric_is_always_in_the_table(limited: Frame, width: int, height: int) -> None:
    for metric, name in (("ttft", "felt"), ("tpot", "TPOT"), ("itl", "ITL"), ("e2el", "E2EL")):
        rows = drawn(limited, width, height, metric)
        assert len(rows) <= max(height, 3)
        assert max(map(len, rows)) <= width
        assert [row for row in rows if row.startswith("▸") and name in row], rows


def test_values_beyond_an_objective_stand_out_in_table_and_chart(canned: ModuleType, frame_of: FrameOf) -> None:
    stats = frame_of(canned.finished(), 110.0).stats
    axes = Axes(window=(0.0, 110.0), limit=4.0)

    def styles(limit: float) -> tuple[set[str], set[str]]:
        rows = draw_latency(stats, axes, (69, 14), metric="ttft", objectives={"ttft": limit})
        return {style for _, style in rows[1][1:]}, {style for row in rows[5:] for _, style in row}

    assert styles(100.0) == ({"strong"}, styles(100.0)[1])
    assert "bad" not in styles(100.0)[1]
    table, chart = styles(0.3)
    assert table == {"bad"}
    assert {"bad", "warn", "sky"} <= chart


def test_a_metric_with_an_objective_has_its_row_in_little_room(limited: Frame) -> None:
    rows = draw_latency(limited.stats, AXES, (49, 7), metric="ttft", objectives={"tpot": 0.04})
    assert [row.split()[0] for row in Lines(rows).plain.replace("▸", "").split("\n")[1:4]] == ["TTFT", "TPOT", "ITL"]
    assert max(map(row_width, rows)) <= 49


async def test_the_panel_says_how_many_requests_kept_the_objective(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    run = canned.finished()
    run.config = replace(run.config, goodput={"ttft": 0.5})
    async with (app := dashboard(run, start_at=110.0)).run_test(size=(160, 48)):
        frame = app.viewer.frame()
        assert 0 < frame.stats.within["ttft"] < 0.5
        for panel in ("#latency", "#heat"):
            assert " % of first tokens within 500 ms" in str(app.screen.query_one(panel)._border_subtitle)
