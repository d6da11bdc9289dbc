"""The keys of a watch speak of a watch, which has no requests to cancel."""

from __future__ import annotations

import pytest

from servetop.tui.fleet.watch_keys import watch_tables


@pytest.mark.parametrize("several", [False, True])
def test_leaving_a_watch_is_about_the_watch(several: bool) -> None:
    keys = [key for table in watch_tables(read_only=False, several=several).values() for key in table]
    texts = [key.tooltip for key in keys if key.action == "quit"]
    assert texts == ["Quit; asks what should happen to the watch", "The same; twice: end the watch"]
