"""What servetop needs of the private parts of Textual and Rich; after an upgrade a failure names the part to adapt."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from inspect import getsource
from types import ModuleType

from rich.segment import Segment
from textual._compositor import CompositorUpdate
from textual.app import App, ComposeResult
from textual.content import Content, Span
from textual.drivers import web_driver
from textual.geometry import Region
from textual.style import Style
from textual.widget import Widget

from servetop.cli.web import web_viewer
from servetop.tui.app import DashboardApp
from servetop.tui.panels.detail.cdf import CdfPanel
from servetop.tui.textual_seam import clear_text_cache, set_titles, titles_of


class Box(Widget):
    """A widget with a frame, as panels have."""

    DEFAULT_CSS = "Box { border: solid red; height: 3; width: 20; }"


class BoxApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Box()


def row_of(app: App[None], y: int) -> str:
    strips = app.screen._compositor.render_strips()
    return "".join(segment.text for segment in strips[y])


async def test_titles_are_drawn_when_their_row_is_refreshed_and_cause_no_repaint_themselves() -> None:
    async with BoxApp().run_test(size=(30, 5)) as pilot:
        box = pilot.app.query_one(Box)
        await pilot.pause()
        assert not box._repaint_regions
        set_titles(box, Content("above"), Content("below"))
        assert not box._repaint_regions
        left, top = box.content_offset
        box.refresh(Region(-left, -top, 20, 1), Region(-left, 2 - top, 20, 1))
        await pilot.pause()
        assert "above" in row_of(pilot.app, 0)
        assert "below" in row_of(pilot.app, 2)


async def test_titles_keep_the_spans_that_a_panel_compares() -> None:
    async with BoxApp().run_test(size=(30, 5)) as pilot:
        box = pilot.app.query_one(Box)
        title = Content("12 ms", [Span(0, 2, Style(bold=True))])
        set_titles(box, title, Content(""))
        shown, _ = titles_of(box)
        assert shown is not None
        assert (shown.plain, shown.spans) == (title.plain, title.spans)


def test_clearing_the_text_cache_drops_texts_that_were_split() -> None:
    for number in range(50):
        Segment(f"{number} 字 of a number that changes").split_cells(7)
    assert Segment._split_cells.cache_info().currsize >= 50  # if Rich no longer has this cache, drop the function
    clear_text_cache()
    assert Segment._split_cells.cache_info().currsize == 0


async def test_a_screen_that_was_left_keeps_no_drawn_lines(
    canned: ModuleType, dashboard: Callable[..., DashboardApp]
) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        await pilot.pause()
        lines = weakref.ref(app.screen.query_one(CdfPanel)._styles_cache)
        await pilot.press("1")
        await pilot.pause()
        gc.collect()
        assert lines() is None


def test_the_web_driver_announces_itself_as_the_web_server_expects() -> None:
    source = getsource(web_driver)
    assert web_viewer._READY.decode().strip() in source
    assert 'b"D%s%s"' in source  # a packet of terminal output: its length, its bytes
    assert 'b"M%s%s"' in source  # a packet of metadata, such as the exit


def test_tests_can_force_and_inspect_a_repaint() -> None:
    assert isinstance(Widget()._repaint_regions, set)
    assert hasattr(CompositorUpdate, "render_segments")


def test_only_the_seam_touches_private_attributes_of_textual() -> None:
    assert list(_uses_outside_of_the_seam()) == []


def _uses_outside_of_the_seam() -> Iterator[str]:
    from tests.house.source_tree import modules

    private = ("_border_title", "_border_subtitle", "_split_cells", "_compositor", "_repaint_regions", "textual._")
    for module in modules():
        if module.room in ("tui", "cli") and not module.name.endswith("textual_seam"):
            yield from (f"{module.path}: {each}" for each in private if each in module.text)
