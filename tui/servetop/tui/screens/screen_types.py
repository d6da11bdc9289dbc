"""The screens behind the number keys."""

from __future__ import annotations

from servetop.tui.keys import SWEEP
from servetop.tui.screens.frame_screen import FrameScreen
from servetop.tui.state.frame import Frame


def screen_type(name: str, frame: Frame) -> type[FrameScreen]:
    """Return the screen of a name, imported after the first frame: start-up needs the live screen only.

    A search has a screen of its own in place of the sweep.
    """
    from servetop.tui.screens import (
        comparison_screen,
        details,
        engine_screen,
        film_screen,
        log_screen,
        requests_screen,
        search_screen,
    )

    types: dict[str, type[FrameScreen]] = {
        "requests": requests_screen.RequestsScreen,
        "distributions": details.DistributionsScreen,
        "sweep": details.SweepScreen,
        "log": log_screen.LogScreen,
        "config": details.ConfigScreen,
        "engine": engine_screen.EngineScreen,
        "film": film_screen.BatchFilmScreen,
        "comparison": comparison_screen.ComparisonScreen,
    }
    if name == SWEEP and frame.search is not None:
        return search_screen.SearchScreen
    return types[name]
