"""What the dashboard does between keys: garbage collections, and the preparation of other screens."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import ModuleType

import pytest

from servetop.tui.app import DashboardApp

Dashboard = Callable[..., DashboardApp]


async def test_full_garbage_collections_are_started_by_a_timer(
    canned: ModuleType, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("servetop.tui.app.COLLECT_SECONDS", 0.01)
    collect, collections = gc.collect, list[int]()
    monkeypatch.setattr(gc, "collect", lambda: collections.append(collect()))
    async with dashboard(canned.growing(20.0)).run_test(size=(80, 24)) as pilot:
        while len(collections) < 2:
            await pilot.pause(0.01)


async def test_other_screens_are_prepared_after_the_first_frame(
    canned: ModuleType, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[str] = []
    monkeypatch.setattr("servetop.tui.app.PREPARE_SECONDS", 0.01)
    monkeypatch.setattr("servetop.tui.app.screen_type", lambda name, _: prepared.append(name))
    async with dashboard(canned.finished()).run_test(size=(80, 24)) as pilot:
        while not prepared:
            await pilot.pause(0.01)
