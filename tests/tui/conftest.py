"""Canned runs, and dashboards with a manual clock."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import textual._wait
import textual.app
import textual.pilot
from rich.style import Style
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from servetop.core.clock import ManualClock
from servetop.tui.app import DashboardApp
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame, View
from servetop.tui.state.playhead import Playhead
from servetop.tui.state.run_state import RunState
from servetop.tui.textual_seam import titles_of

if TYPE_CHECKING:
    from tests.tui.canned import CannedRun

# The pilot continues once a span of 20 ms took less than 1 ms of processor time. On a virtual machine that is slow to
# wake up, an idle loop takes 1.7 ms of it, and every key would wait for a second in vain.
textual._wait.SLEEP_IDLE = textual._wait.SLEEP_GRANULARITY / 4
_span_without_work = textual._wait.wait_for_idle
_MOST_ROUNDS = 2000


async def wait_for_idle(min_sleep: float = textual._wait.SLEEP_GRANULARITY, max_sleep: float = 1.0) -> None:
    """Wait as the pilot does, then until the event loop is idle: a starved process looks idle to the pilot."""
    await _span_without_work(min_sleep, max_sleep)
    rounds = quiet = 0
    while quiet < 3 and rounds < _MOST_ROUNDS:
        await asyncio.sleep(0)
        rounds, quiet = rounds + 1, 0 if getattr(asyncio.get_running_loop(), "_ready", ()) else quiet + 1


for _waiting in (textual.app, textual.pilot):
    vars(_waiting)["wait_for_idle"] = wait_for_idle

# Every app of a test parses the same style sheets, a seventh of the processor time of these tests: once is enough.
_parse_rules = Stylesheet._parse_rules
_parsed: dict[tuple[Any, ...], Any] = {}


def parse_rules_once(sheet: Stylesheet, *source: Any, **options: Any) -> Any:
    key = (source, tuple(options.items()), frozenset(sheet._variables.items()))
    if key not in _parsed:
        _parsed[key] = _parse_rules(sheet, *source, **options)
    return _parsed[key]


setattr(Stylesheet, "_parse_rules", parse_rules_once)  # noqa: B010

# The name of a picture is a checksum of all its segments, written out: of a few dozen styles, each a thousand times.
setattr(Style, "__repr__", functools.lru_cache(maxsize=4096)(Style.__repr__))  # noqa: B010
setattr(RuleSet, "__hash__", object.__hash__)  # noqa: B010 - by identity as before, without a call of Python


@pytest.fixture(scope="session")
def canned() -> ModuleType:
    """The module of canned runs next to this file: test modules form no package from which they could import it."""
    name = "servetop_canned_runs"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("canned.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture
def dashboard() -> Callable[..., DashboardApp]:
    """A dashboard on a run, with a clock that stands still until `app.viewer.clock` is moved."""

    def make(run: CannedRun, **options: Any) -> DashboardApp:
        return DashboardApp(run, clock=ManualClock(), **options)

    return make


@pytest.fixture
def growing(canned: ModuleType, dashboard: Callable[..., DashboardApp]) -> tuple[CannedRun, DashboardApp]:
    """A live run at second 110, and a dashboard on it."""
    run = canned.growing(110.0)
    return run, dashboard(run)


@pytest.fixture(scope="session")
def frame_of() -> Callable[..., Frame]:
    """The frame of a run at one time, without an app."""

    def make(run: CannedRun, at: float, **view: Any) -> Frame:
        state = RunState(run.header)
        state.fold(run.poll())
        return state.at(View(playhead=Playhead(at=at), **view), live=run.is_live())

    return make


@pytest.fixture
def text_of() -> Callable[[DashboardApp, str], str]:
    """The text of a panel: its title and its rows."""

    def read(app: DashboardApp, selector: str) -> str:
        panel = app.screen_stack[0].query_one(selector, Panel)
        return f"{titles_of(panel)[0] or ''}\n{panel.render().plain}"

    return read
