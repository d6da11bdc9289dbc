"""A watch on the dashboard: the engine's own figures, no panel of a client, and no key that steers."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from servetop.core.config import RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.tui.app import DashboardApp
from servetop.tui.keys import STEERING
from servetop.tui.panels.panel import Panel
from servetop.tui.state.command_requests import NO_LOAD
from tests.analysis.test_watched_signals import FACTS, ticks
from tests.tui.canned import CannedRun
from tests.watched_pages import paged_ticks

Dashboard = Callable[..., DashboardApp]
OF_CLIENT = ("load", "latency", "heat", "trust", "where-ttft", "story")
SIZES = [(80, 24), (120, 40), (200, 60), (60, 16), (160, 40), (200, 24)]


def watched(*, live: bool, canned: ModuleType) -> CannedRun:
    config = RunConfig(watch=WatchConfig())
    return CannedRun(ticks=ticks(waiting=30.0), facts=FACTS, config=config, live=live, now=39.0 if live else 1e9)


def shown(app: DashboardApp) -> set[str]:
    return {panel.id or "" for panel in app.screen.query(Panel) if panel.display and panel.size.height > 0}


def text(app: DashboardApp) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("live", [True, False])
async def test_there_is_no_panel_and_no_word_of_a_client(
    canned: ModuleType, dashboard: Dashboard, size: tuple[int, int], live: bool
) -> None:
    app = dashboard(watched(live=live, canned=canned))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        panels, screen = shown(app), text(app)
    assert panels.isdisjoint(OF_CLIENT)
    assert {"throughput", "engine-latency", "kv", "queue", "preemptions"} <= panels
    for word in ("in flight", "judging", "trust", "req/s", "no load yet", "Requests", "rate", "hold"):
        assert word not in screen
    assert "watch" in screen.splitlines()[0]


async def test_the_verdict_of_now_is_that_of_the_engine(
    canned: ModuleType, dashboard: Dashboard, text_of: Callable[[DashboardApp, str], str]
) -> None:
    app = dashboard(watched(live=True, canned=canned))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert "batch-bound: running 16 of 16, 30 waiting" in text_of(app, "#diagnosis")


@pytest.mark.parametrize(
    ("until", "title"),
    [(60.0, "520 tok/s out, engine's count"), (20.0, "⚠ no sample for"), (0.0, "no metrics from vLLM")],
)
async def test_a_server_that_does_not_respond_has_no_throughput(
    until: float, title: str, canned: ModuleType, dashboard: Dashboard, text_of: Callable[[DashboardApp, str], str]
) -> None:
    ticks = paged_ticks(every=1.0, seconds=60.0, until=until)
    app = dashboard(CannedRun(ticks=ticks, facts=FACTS, config=RunConfig(watch=WatchConfig()), live=True, now=39.0))
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        found = text_of(app, "#throughput")
    assert title in found
    assert ("0 tok/s" in found) == (until > 39.0), "not a rate of 0 either"


async def test_no_steering_key_sends_a_command(canned: ModuleType, dashboard: Dashboard) -> None:
    run = watched(live=True, canned=canned)
    app = dashboard(run)
    keys = [key.keys for key in STEERING]
    async with app.run_test(size=(120, 40)) as pilot:
        for key in keys:
            await pilot.press(key)
        await pilot.press("end")
        await pilot.press("p")
        await pilot.pause()
        message = app.viewer.view.message
    assert run.sent == []
    assert message == NO_LOAD


@pytest.mark.parametrize("digit", ["2", "3", "4", "8"])
async def test_a_screen_of_requests_says_that_there_are_none(
    canned: ModuleType, dashboard: Dashboard, digit: str
) -> None:
    app = dashboard(watched(live=False, canned=canned))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(digit)
        await pilot.pause()
        assert len(app.screen_stack) == 1
        assert "a watch has no requests of its own" in app.viewer.view.message


async def test_the_engine_page_and_the_log_are_there(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(watched(live=True, canned=canned))
    async with app.run_test(size=(120, 40)) as pilot:
        for digit in ("5", "6", "7"):
            await pilot.press(digit)
            await pilot.pause()
            assert len(app.screen_stack) == 2
            assert "batch size" not in text(app).splitlines()[-1]
