"""The screens behind the number keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.histogram import LogHistogram
from servetop.core.text import formats
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.distributions import draw_cdf, draw_constants, draw_ridgelines
from servetop.tui.drawing.ridgeline import Ridge
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.panels.detail.cdf import CdfPanel, StageLegend
from servetop.tui.panels.detail.config import config_rows
from servetop.tui.panels.panel import Panel
from servetop.tui.screens.details import ConfigScreen, DistributionsScreen, SweepScreen
from servetop.tui.screens.live import LiveScreen
from servetop.tui.screens.log_screen import LogScreen
from servetop.tui.state.frame import Frame

Dashboard = Callable[..., DashboardApp]
FrameOf = Callable[..., Frame]


def rows(app: DashboardApp, selector: str) -> list[str]:
    """The rows of a panel of the top screen."""
    return app.screen.query_one(selector, Panel).render().plain.split("\n")


async def test_number_keys_switch_between_any_screens_and_escape_goes_back(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    app = dashboard(canned.growing(110.0))
    async with app.run_test() as pilot:
        for key, kind in (
            ("3", DistributionsScreen), ("4", SweepScreen), ("5", LogScreen), ("6", ConfigScreen), ("1", LiveScreen),
            ("4", SweepScreen), ("escape", LiveScreen),
        ):  # fmt: skip
            await pilot.press(key)
            assert type(app.screen) is kind
            assert len(app.screen_stack) <= 2


async def test_the_configuration_scrolls_to_its_end(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.growing(110.0))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("6", *["pagedown"] * 9)
        last = "".join(text for text, _ in config_rows(app.viewer.run.header, 90)[-1])
        assert rows(app, "#config")[-1].rstrip() == last.rstrip()
        await pilot.press(*["pageup"] * 9)
        assert rows(app, "#config")[0] == "run"


def test_stages_are_compared_as_of_the_time_shown(canned: ModuleType, frame_of: FrameOf) -> None:
    figures = frame_of(canned.finished(), 50.0).per_stage()
    assert [each.stage.request_rate for each in figures] == [4.0, 8.0]
    assert [each.ended for each in figures] == [True, False]


def test_only_finished_stages_have_steady_windows(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.growing(50.0)
    assert list(frame_of(run, 50.0).steady) == [0]
    assert list(frame_of(canned.finished(), 50.0).steady) == [0, 1, 2, 3]
    run.stages = [replace(stage, warmup=stage.index == 0) for stage in run.stages]
    assert list(frame_of(run, 50.0).steady) == []


def test_settings_are_shown_as_a_reader_writes_them(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    command = ("/opt/my venv/bin/python", "-m", "vllm.entrypoints.openai.api_server")
    engine = replace(run.config.engine, command=command, extra_args=("--swap-space", "8"))
    run.config = replace(run.config, engine=engine, goodput={"ttft": 0.5, "e2el": 5.0})
    shown = Lines(config_rows(frame_of(run, 60.0).header, 90)).plain
    rows = {row.split()[0]: row.split()[1:] for row in shown.split("\n") if len(row.split()) > 1}
    assert (rows["drain_at_stages"], rows["drain_timeout"], rows["label"]) == (["no"], ["120", "s"], ["–"])
    assert (rows["goodput.ttft"], rows["goodput.e2el"], rows["input_len"]) == (
        ["500", "ms"],
        ["5", "s"],
        ["128", "tokens"],
    )
    assert rows["extra_args"] == ["--swap-space", "8"]
    assert "'/opt/my venv/bin/python' -m\n" + " " * 34 + "vllm.entrypoints.openai.api_server\n" in shown
    assert not {"False", "True", "None"} & set(shown.split())


@pytest.mark.parametrize(("width", "height"), [(40, 9), (14, 4), (8, 2), (90, 30)])
def test_a_distribution_stays_in_its_box(width: int, height: int) -> None:
    drawn = draw_cdf([LogHistogram.of([0.02, 0.03, 1.5]), LogHistogram.of([])], width, height)
    assert len(drawn) <= height
    assert max(row_width(row) for row in drawn) <= width


def test_every_setting_is_shown_except_the_values_of_http_headers(canned: ModuleType, frame_of: FrameOf) -> None:
    run = canned.finished()
    run.config = replace(run.config, workload=WorkloadConfig(headers={"Authorization": "Bearer secret"}))
    shown = Lines(config_rows(frame_of(run, 60.0).header, 90)).plain
    assert "headers.Authorization" in shown
    assert "secret" not in shown
    assert "4 req/s · batch 192" in shown
    assert "kv_blocks_total" in shown
    assert "True" not in shown
    assert "1800.0" not in shown


def ridges(*samples: list[float]) -> list[Ridge]:
    """A ridge for each list of values."""
    return [
        Ridge(histogram=LogHistogram.of(each), style="sky", name=f"{n} req/s · stage {n}", short=f"{n}: {n}")
        for n, each in enumerate(samples, start=1)
    ]


@pytest.mark.parametrize(("width", "height"), [(40, 9), (14, 4), (8, 2), (90, 30)])
def test_histograms_of_stages_stay_in_their_box(width: int, height: int) -> None:
    drawn = draw_ridgelines(ridges([0.02, 0.03, 1.5], []), width, height, limit=0.5)
    assert len(drawn) <= height
    assert max(row_width(row) for row in drawn) <= width


def test_each_histogram_has_its_name_and_the_objective_its_line() -> None:
    shown = Lines(draw_ridgelines(ridges([0.02] * 9, [0.09]), 44, 3, limit=0.05)).plain
    first, second, axis = shown.split("\n")
    assert (first[:4], second[:4]) == ("1: 1", "2: 2")
    assert first.index("█") < first.index("┊") == second.index("┊") < second.index("█")
    assert axis.split() == ["20ms", "50ms", "100ms"]


def test_high_ridges_have_their_name_above_them_and_no_line_through_it() -> None:
    for limit in (0.021, 0.025, 0.03, 0.04):
        shown = Lines(draw_ridgelines(ridges([0.02] * 9, [0.09]), 30, 9, limit=limit)).plain.split("\n")
        assert [row[:17] for row in (shown[0], shown[4])] == ["1 req/s · stage 1", "2 req/s · stage 2"]
        assert "┊" in shown[1]


def test_a_bucket_that_is_wider_than_a_column_fills_all_of_its_columns() -> None:
    values = [10.0 ** (number / 500 - 2) for number in range(150)]
    bars = Lines(draw_ridgelines(ridges(values), 80, 3)).plain.split("\n")[1]
    assert " " not in bars.lstrip("1: ")


def test_the_axis_ends_where_nearly_all_values_are() -> None:
    values = [0.02, 0.03, 0.04, 0.05] * 250
    together, outlier = [1e-6] * 400, [9.0]
    axis = Lines(draw_ridgelines(ridges(values + together + outlier), 60, 6)).plain.split("\n")[-1]
    assert axis.split() == ["20ms", "50ms", "100ms"]


def test_lengths_that_do_not_vary_are_one_value() -> None:
    same, other = ridges([128.0] * 9, [128.0] * 3), ridges([128.0] * 9, [512.0])
    text = Lines(draw_constants(same, 40, 5, scale=formats.count) or []).plain
    assert text.split() == ["always", "128"]
    two = Lines(draw_constants(other, 40, 5, scale=formats.count) or []).plain.split("\n")
    assert [row.partition(": ")[0] for row in two] == ["1 req/s · stage 1", "2 req/s · stage 2"]
    assert two[1].endswith("always 512")
    assert draw_constants(ridges([128.0, 512.0]), 40, 5, scale=formats.count) is None


@pytest.mark.parametrize(("at", "label"), [(50.0, "2: TTFT"), (30.0, "TTFT")], ids=["two stages", "one"])
def test_the_title_names_the_stage_of_its_figures(canned: ModuleType, frame_of: FrameOf, at: float, label: str) -> None:
    assert Lines([CdfPanel("ttft").title(frame_of(canned.finished(), at))[0]]).plain == label


async def test_the_share_within_an_objective_says_what_it_counts_where_there_is_room(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    run = canned.finished()
    run.config = replace(run.config, goodput={"ttft": 0.5, "itl": 0.03, "e2el": 5.0})
    app = dashboard(run, start_at=126.0)
    async with app.run_test(size=(220, 60)) as pilot:
        await pilot.press("3")
        titles = [str(app.screen.query_one(f"#{name}")._border_title) for name in ("ttft", "itl", "e2el")]
        assert "% of first tokens ≤ ┊500 ms" in titles[0]
        assert "% of tokens ≤ ┊30.0 ms" in titles[1]
        assert "% of ended ≤ ┊5.00 s" in titles[2]
        await pilot.resize_terminal(120, 40)
        assert "% ≤ ┊500 ms" in str(app.screen.query_one("#ttft")._border_title)


@pytest.mark.parametrize(
    ("good", "kept"), [((9, 9), "90.0 %"), ((9, 3), "90.0 %, felt 30.0 %"), ((None, None), "0.0–")],
    ids=["counted", "queued at the client", "older recording"],
)  # fmt: skip
def test_goodput_is_exact_if_it_was_counted(
    canned: ModuleType, frame_of: FrameOf, good: tuple[int | None, int | None], kept: str
) -> None:
    run = canned.finished()
    run.config = replace(run.config, goodput={"ttft": 0.5, "e2el": 5.0})
    run.ticks = [
        replace(tick, client=replace(tick.client, ok=8, errors=2, timeouts=0, good=good[0], good_due=good[1]))
        for tick in run.ticks
    ]
    frame = frame_of(run, 126.0)
    *_, newest, objectives = Lines(StageLegend().draw(frame, 160, 1)).plain.split("   ")
    assert newest.startswith(f"███ 20 req/s · batch 192 · stage 4 {kept}")
    assert objectives == "ended within TTFT ≤500 ms, E2EL ≤5.00 s"
    assert Lines(StageLegend().draw(frame, 62, 1)).plain == newest  # it has priority


async def test_the_distributions_show_the_share_that_meets_the_objectives(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    run = canned.finished()
    run.config = replace(run.config, goodput={"ttft": 0.5, "e2el": 5.0})
    app = dashboard(run, start_at=126.0)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("3")
        *_, older, newest, _ = rows(app, "#legend")[0].split("   ")
        assert newest.startswith("███ 20 req/s · batch 192 · stage 4 0.0–")
        assert older.startswith("███ 16 req/s · batch 192 · stage 3 ")
        assert any("┊" in row for row in rows(app, "#ttft"))
        assert not any("┊" in row for row in rows(app, "#itl"))


async def test_the_share_that_meets_the_ttfot_objective_is_beside_ttft(
    canned: ModuleType, dashboard: Dashboard
) -> None:
    run = canned.finished()
    run.config = replace(run.config, goodput={"ttfot": 0.5})
    app = dashboard(run, start_at=126.0)
    async with app.run_test(size=(200, 48)) as pilot:
        await pilot.press("3")
        assert "TTFOT" in str(app.screen.query_one("#ttft").border_title)
        assert "███ 20 req/s · batch 192 · stage 4 " in rows(app, "#legend")[0]
        assert rows(app, "#legend")[0].endswith("ended within TTFOT ≤500 ms")


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_histograms_are_shown_first_and_curves_by_key(
    canned: ModuleType, dashboard: Dashboard, size: tuple[int, int]
) -> None:
    app = dashboard(canned.growing(110.0))
    async with app.run_test(size=size) as pilot:
        await pilot.press("3")
        assert not any("100%┤" in row for row in rows(app, "#ttft"))
        assert any("█" in row for row in rows(app, "#ttft"))
        await pilot.press("h")
        assert "100%┤" in rows(app, "#ttft")[0]
        assert not app.viewer.view.heat
        await pilot.press("1", "3")
        assert "100%┤" in rows(app, "#ttft")[0]


@pytest.mark.parametrize(("size", "grows"), [((120, 40), "height"), ((160, 48), "width")])
async def test_lengths_that_do_not_vary_leave_their_room_to_the_latencies(
    size: tuple[int, int], grows: str, canned: ModuleType, dashboard: Dashboard
) -> None:
    sizes = []
    for fixed in (False, True):
        run = canned.finished()
        if fixed:
            lengths = {"input_len": LogHistogram.of([128.0]), "output_len": LogHistogram.of([64.0])}
            run.ticks = [replace(tick, client=replace(tick.client, **lengths)) for tick in run.ticks]
        app = dashboard(run, start_at=126.0)
        async with app.run_test(size=size) as pilot:
            await pilot.press("3")
            await pilot.pause()
            assert ("always 128" in "".join(rows(app, "#input_len"))) is fixed
            sizes.append(getattr(app.screen.query_one("#ttft").outer_size, grows))
    assert sizes[1] > sizes[0] + 3
