"""What the live screen repaints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, ClassVar

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from servetop.tui.app import DashboardApp
from servetop.tui.drawing.palette import STYLES
from servetop.tui.drawing.text_runs import TextRow
from servetop.tui.panels.detail.batch_film import BatchFilmPanel
from servetop.tui.panels.detail.cdf import CdfPanel
from servetop.tui.panels.detail.requests import RequestsPanel
from servetop.tui.panels.live.kv import KvPanel
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.stage_metrics import METRICS

Dashboard = Callable[..., DashboardApp]
Growing = tuple[Any, DashboardApp]
TextOf = Callable[[DashboardApp, str], str]


async def test_the_heat_map_replaces_the_chart_by_key_or_is_beside_it_on_large_screens(
    canned: ModuleType, dashboard: Dashboard, text_of: TextOf
) -> None:
    app = dashboard(canned.growing(110.0))
    async with app.run_test(size=(80, 24)) as pilot:

        def shown() -> list[str]:
            return [each for each in ("latency", "heat") if app.screen.query_one(f"#{each}").display]

        assert shown() == ["latency"]
        await pilot.press("h")
        await pilot.pause()
        assert shown() == ["heat"]
        await pilot.press("t")
        assert text_of(app, "#heat").startswith("Heat map TPOT")
        for size in ((160, 48), (220, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert shown() == ["latency", "heat"]
        await pilot.press("h")
        assert shown() == ["latency", "heat"]


async def test_only_changed_rows_and_titles_are_repainted(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(110.25)
    app = dashboard(run)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()
        load = app.screen_stack[0].query_one("#load")
        app.redraw()
        assert not load._repaint_regions
        run.now = 110.5
        app.poll()
        assert {region.height for region in load._repaint_regions} == {1}
        assert len(load._repaint_regions) < 4  # title and legends; the chart has no new bin before second 111


async def test_a_covered_screen_is_not_drawn_and_is_current_when_uncovered(growing: Growing, text_of: TextOf) -> None:
    run, app = growing
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("2", "down", "enter")
        run.now = 112.0
        app.poll()
        await pilot.pause()
        assert "00:01:50" in text_of(app, "#header")
        await pilot.press("escape", "escape")
        await pilot.pause()
        assert "00:01:52" in text_of(app, "#header")


async def test_a_panel_of_a_new_screen_is_drawn_once(
    canned: ModuleType, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: Counter[str | None] = Counter()

    def count(kind: type[Panel]) -> None:
        draw = kind.draw

        def counted(self: Panel, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
            drawn[self.id] += 1
            return draw(self, frame, width, height)

        monkeypatch.setattr(kind, "draw", counted)

    for kind in (RequestsPanel, CdfPanel, BatchFilmPanel):
        count(kind)
    app = dashboard(canned.finished())
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("2", "3", "8")
        await pilot.pause()
    assert drawn == dict.fromkeys(("requests", *METRICS, "film"), 1)


async def test_the_requests_are_redrawn_twice_a_second(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.growing(108.0)
    app = dashboard(run)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("2")
        await pilot.pause()
        panel = app.screen.query_one("#requests")
        drawn = []
        for _ in range(4):
            run.now += 0.25
            app.poll()
            drawn.append(bool(panel._repaint_regions))
            await pilot.pause()
        assert drawn == [False, True, False, True]


class Unresized(KvPanel):
    """A panel whose resize events are late, as on a busy machine; keeps the first row of each drawing."""

    DEFAULT_CSS = "Unresized { border: round white; height: 8; }"

    def on_mount(self) -> None:
        self.tops: list[str] = []

    def _on_resize(self, event: events.Resize) -> None:
        event.prevent_default()
        event.stop()

    def on_resize(self) -> None:
        return

    def render_lines(self, crop: Region) -> list[Strip]:
        strips = super().render_lines(crop)
        self.tops += [strips[0].text] if crop.y == 0 and strips else []
        return strips


class OnePanel(Screen[None]):
    """A panel that has its frame before its size."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(STYLES)

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self._frame = frame

    def compose(self) -> ComposeResult:
        yield Unresized(id="kv")

    def on_mount(self) -> None:
        self.query_one(Unresized).frame = self._frame


async def test_a_panel_is_never_drawn_without_its_title(canned: ModuleType, frame_of: Callable[..., Frame]) -> None:
    app: App[None] = App()
    async with app.run_test(size=(60, 12)) as pilot:
        await app.push_screen(OnePanel(frame_of(canned.growing(110.0), 110.0)))
        await pilot.pause()
        tops = app.screen.query_one(Unresized).tops
        assert tops
        assert all("KV" in top for top in tops), tops
