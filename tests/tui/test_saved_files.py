"""Keys that write files: what they write, where they say that it is, and when they refuse."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from servetop.core.errors import ServetopError
from servetop.tui.app import DashboardApp
from servetop.tui.options import DashboardOptions

Dashboard = Callable[..., DashboardApp]


def ended(canned: ModuleType) -> Any:
    run = canned.growing(110.0)
    run.live = False
    return run


async def test_a_picture_has_the_screen_and_no_font_from_elsewhere(canned: ModuleType, dashboard: Dashboard) -> None:
    saved: list[tuple[str, str]] = []

    def save(name: str, svg: str) -> list[Path]:
        saved.append((name, svg))
        return [Path(f"{name}.svg"), Path(f"{name}.png")]

    app = dashboard(canned.growing(110.0), options=DashboardOptions(save_picture=save))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("P")
        await app.workers.wait_for_complete(list(app.workers))
        name, svg = saved[0]
        assert app.viewer.view.message == f"picture of the screen: {name}.svg and {name}.png"
    assert name == f"{app.viewer.source.name}-1-50"
    text = " ".join(each.text or "" for each in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"))
    assert "Throughput" in text
    assert "@font-face" not in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "").split("<style>")[1]


async def test_the_report_of_an_ended_run_is_written_in_a_thread(canned: ModuleType, dashboard: Dashboard) -> None:
    written: list[Path] = []

    def write(recording: Path) -> Path:
        written.append(recording)
        return Path("run.html")

    options = DashboardOptions(write_report=write, recording=Path("run.servetop"))
    app = dashboard(ended(canned), options=options)
    async with app.run_test() as pilot:
        await pilot.press("W")
        await app.workers.wait_for_complete(list(app.workers))
        assert (written, app.viewer.view.message) == ([Path("run.servetop")], "report: run.html")


async def test_the_report_of_an_active_run_is_refused(canned: ModuleType, dashboard: Dashboard) -> None:
    options = DashboardOptions(write_report=lambda path: path, recording=Path("run.servetop"))
    app = dashboard(canned.growing(110.0), options=options)
    async with app.run_test() as pilot:
        await pilot.press("W")
        await pilot.pause()
        assert app.viewer.view.message == "the run is active: write its report when it has ended"


async def test_what_cannot_be_written_is_said(canned: ModuleType, dashboard: Dashboard) -> None:
    def fail(*_: object) -> Any:
        raise ServetopError("cannot write run.svg: no space left on device")

    options = DashboardOptions(save_picture=fail, write_report=fail, recording=Path("run.servetop"))
    app = dashboard(ended(canned), options=options)
    async with app.run_test() as pilot:
        for key in ("P", "W"):
            app.viewer.show_message("")
            await pilot.press(key)
            await app.workers.wait_for_complete(list(app.workers))
            assert app.viewer.view.message == "cannot write run.svg: no space left on device"


@pytest.mark.parametrize("key", ["P", "W"])
async def test_a_read_only_dashboard_writes_nothing(canned: ModuleType, dashboard: Dashboard, key: str) -> None:
    options = DashboardOptions(read_only=True, recording=Path("run.servetop"))
    app = dashboard(ended(canned), options=options)
    async with app.run_test() as pilot:
        await pilot.press(key)
        await pilot.pause()
        assert "read-only" in app.viewer.view.message
