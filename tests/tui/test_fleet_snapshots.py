"""The table of watched servers and an opened one as SVG snapshots, as in test_snapshots.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from servetop.tui.app import DashboardApp
from tests.tui.canned_fleet import fleet

Dashboard = Callable[..., DashboardApp]
Compare = Callable[..., bool]
SIZES = [(80, 24), (120, 40)]


@pytest.fixture(autouse=True)
def same_colours_on_every_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("keys", [("down",), ("down", "enter"), ("7",)], ids=["table", "opened", "engine-page"])
def test_a_watch_of_several_servers(
    dashboard: Dashboard, snap_compare: Compare, keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    assert snap_compare(dashboard(fleet(), start_at=45.0), terminal_size=size, press=["space", *keys])


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_live_watch_of_several_servers(dashboard: Dashboard, snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(dashboard(fleet(live=True, until=45.0)), terminal_size=size)
