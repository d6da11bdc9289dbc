"""The batch film's screen: slots, the cursor, and the request under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from servetop.core.events import RequestRecord
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.charts import GUTTER
from servetop.tui.options import DashboardOptions
from servetop.tui.panels.detail.batch_film import BatchFilmPanel
from servetop.tui.panels.detail.film_rows import film_layout
from servetop.tui.panels.detail.tokens import TokensPanel
from servetop.tui.screens.film_screen import BatchFilmScreen
from servetop.tui.screens.live import LiveScreen
from servetop.tui.screens.requests_screen import RequestScreen
from servetop.tui.state.film_reader import FilmReader
from servetop.tui.state.film_window import MOST_FILM_REQUESTS
from servetop.tui.state.frame import Frame

Dashboard = Callable[..., DashboardApp]


def panel_of(app: DashboardApp) -> BatchFilmPanel:
    return app.screen.query_one(BatchFilmPanel)


def lines_of(app: DashboardApp) -> list[str]:
    return panel_of(app).render().plain.split("\n")


async def test_enter_opens_the_request_in_the_slot_at_the_cursor(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=60.0)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("8", "c", "left", "left", "down", "down")
        assert isinstance(app.screen, BatchFilmScreen)
        chosen = panel_of(app).chosen()
        assert chosen is not None
        assert chosen.sent is not None
        cursor = app.viewer.view.cursor
        assert cursor is not None
        assert chosen.sent <= cursor.at + 0.5
        assert f"slot 2  request {chosen.id}" in lines_of(app)[1]
        assert "Enter" not in str(panel_of(app)._border_subtitle)  # the keys are in the bottom line alone
        await pilot.press("enter")
        assert isinstance(app.screen, RequestScreen)
        assert f"Request {chosen.id}" in str(app.screen.query_one(TokensPanel)._border_title)
        await pilot.press("escape", "escape")
        assert isinstance(app.screen, LiveScreen)


async def test_a_click_sets_the_cursor_and_chooses_the_slot(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=60.0)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("8")
        panel = panel_of(app)
        grid = panel._grid
        assert grid is not None
        assert len(grid.states) <= 40
        slot, column = (int(each[0]) for each in np.nonzero(grid.owners >= 0))
        await pilot.click(BatchFilmPanel, offset=(GUTTER + column + 2, slot + 3))
        assert panel.selected == slot
        chosen = panel.chosen()
        assert chosen is not None
        assert chosen.id == grid.owners[slot, column]
        await pilot.click(BatchFilmPanel, offset=(GUTTER + column + 2, slot + 3), times=2)
        assert isinstance(app.screen, RequestScreen)


async def test_a_request_stays_in_its_slot_while_time_moves(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.finished(), start_at=70.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("8")
        before = dict(panel_of(app)._reader._slots)
        for _ in range(8):
            await pilot.press("full_stop")
        after = panel_of(app)._reader._slots
        kept = before.keys() & after.keys()
        assert len(kept) > 20
        assert {key: after[key] for key in kept} == {key: before[key] for key in kept}


async def test_the_live_edge_shows_as_many_requests_as_run(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.growing(60.0))
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("8")
        panel = panel_of(app)
        assert "recorded when they end" in str(panel._border_title)
        assert any(line.rstrip().endswith((" ·", "··")) for line in lines_of(app)[2:])
        grid, film = panel._grid, panel._film
        assert grid is not None
        assert film is not None
        used = (grid.states > 0).sum(axis=0)
        last = int(np.flatnonzero(used)[-1])
        assert panel.frame is not None
        engine = panel.frame.stats.engine
        assert engine is not None
        assert engine.running is not None
        assert abs(used[last] - engine.running) <= 3


async def test_more_slots_than_rows_share_rows_or_scroll(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.growing(110.0), options=DashboardOptions(theme="mono"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("8")
        assert "▀" not in "\n".join(lines_of(app))
        assert lines_of(app)[2].startswith("    1┤")
        assert "slots 1–" in lines_of(app)[1]
        await pilot.press("down", *["pagedown"] * 3)
        assert "slots 4" in str(panel_of(app)._border_title)
        assert "▸  61┤" in "\n".join(lines_of(app))
        app.themes.set_theme("dark")
        await pilot.pause()
        assert "▀" in "\n".join(lines_of(app))


async def test_keys_before_the_load_do_nothing(canned: ModuleType, dashboard: Dashboard) -> None:
    app = dashboard(canned.booting())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("8", "down", "enter", "pagedown")
        await pilot.click(BatchFilmPanel, offset=(20, 5))
        assert isinstance(app.screen, BatchFilmScreen)
        assert "no request yet" in "\n".join(lines_of(app))


async def test_without_streaming_the_film_is_not_known(canned: ModuleType, dashboard: Dashboard) -> None:
    run = canned.finished()
    run.config = replace(run.config, workload=replace(run.config.workload, stream=False))
    app = dashboard(run, start_at=60.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("8", "down", "enter")
        assert "responses are not streamed" in "\n".join(lines_of(app))


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40), (220, 60)])
async def test_the_film_fits(canned: ModuleType, dashboard: Dashboard, size: tuple[int, int]) -> None:
    for run in (canned.growing(110.0), canned.without_metrics()):
        app = dashboard(run, start_at=60.0)
        async with app.run_test(size=size) as pilot:
            await pilot.press("8", "c", "down")
            panel = panel_of(app)
            lines = lines_of(app)
            assert len(lines) == panel.size.height
            assert max(map(len, lines)) <= panel.size.width


def test_only_the_requests_of_the_window_are_read(canned: ModuleType, frame_of: Callable[..., Frame]) -> None:
    run = canned.finished()
    run.records = [replace(each, id=2 * each.id + twin) for each in run.records for twin in (0, 1)]
    asked: list[tuple[float, float, int]] = []

    def requests(start: float, until: float, *, most: int = 1) -> Sequence[RequestRecord]:
        asked.append((start, until, most))
        found: Sequence[RequestRecord] = run.requests(start, until, most=most)
        return found

    frame = replace(frame_of(run, 108.0), requests=requests)
    film = FilmReader().read(frame, (58.0, 118.0))
    assert len(asked) == 1
    assert asked[0][0] == 58.0
    assert asked[0][1] <= 108.0
    assert not film.complete
    assert asked[0][2] == len(film.records) == MOST_FILM_REQUESTS
    assert film.total >= MOST_FILM_REQUESTS
    assert all(stay.admitted <= 108.0 for stay in film.stays)


@pytest.mark.parametrize("height", [6, 12, 20, 40])
@pytest.mark.parametrize("slots", [1, 8, 30, 60, 256])
def test_the_layout_fills_the_height(height: int, slots: int) -> None:
    for colours in (False, True):
        layout = film_layout(height, slots=slots, colours=colours)
        assert layout.rows + layout.waiting + 3 == height
        assert layout.per_row == 1 or (colours and slots > layout.rows)
        top = layout.scrolled(0, selected=slots - 1, slots=slots)
        assert slots - 1 in range(top, top + layout.rows * layout.per_row)
