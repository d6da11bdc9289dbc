"""The dashboard app: polls the run, draws frames, and owns the components that playback, steering and themes need."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.command import Provider
from textual.driver import Driver
from textual.events import DescendantFocus
from textual.screen import Screen
from textual.widgets import Input

from servetop.analysis.series.stats_series import LATENCIES
from servetop.core.clock import Clock, MonotonicClock
from servetop.core.errors import ServetopError
from servetop.core.interfaces.run_source import RunSource
from servetop.tui.baseline_loading import load_baseline
from servetop.tui.fleet.fleet_selection import FleetSelection
from servetop.tui.fleet.watch_keys import watch_tables
from servetop.tui.keys import OF_CLIENTS, SWEEP, VIEWING, Key, bindings, palette_entries, palette_title, tables
from servetop.tui.options import DashboardOptions
from servetop.tui.playback import Playback
from servetop.tui.run_viewer import RunViewer
from servetop.tui.screens.frame_screen import Controls, FrameScreen
from servetop.tui.screens.live import LiveScreen
from servetop.tui.screens.question import QuestionScreen
from servetop.tui.screens.saved_files import save_picture, write_report
from servetop.tui.screens.screen_types import screen_type
from servetop.tui.state.command_requests import QUIT_RUN, QUIT_WATCH
from servetop.tui.steering import STOP_ACTIONS, Steering
from servetop.tui.sweep_loading import load_sweeps
from servetop.tui.terminal_output import sgr_shortening_driver
from servetop.tui.textual_seam import CLEAR_CACHE_SECONDS, clear_text_cache, forget_removed_widgets
from servetop.tui.themes import THEMES, Themes, no_color_requested

POLL_SECONDS = 0.05
EXIT_POLL_SECONDS = 0.5
COLLECT_SECONDS = 5.0
"""Between two full garbage collections, of 30 ms: on a timer they hardly ever delay the drawing after a key."""
PREPARE_SECONDS = 1.0
"""From the first frame until what other screens need is prepared."""
_NEVER = 1_000_000
"""Threshold for full collections that allocations would start."""


class DashboardApp(App[str]):
    """Shows one run. The result is how it was left: `stop`, `cancel`, `detach`, `ended`, or what `exit_requested` gave.

    If the command to end the run could not be recorded, it is `stop by signal` or `cancel by signal`.
    """

    CSS_PATH = "dashboard.tcss"
    TITLE = "servetop"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(VIEWING)]
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {lambda: _action_search()}
    ESCAPE_TO_MINIMIZE = False

    def __init__(
        self, source: RunSource, *, start_at: float | None = None, owns_run: bool = False, clock: Clock | None = None,
        options: DashboardOptions | None = None,
    ) -> None:  # fmt: skip
        """`owns_run`: quitting asks what should happen to the run. `start_at`: open at that second of the run."""
        super().__init__(ansi_color=True if no_color_requested(os.environ) else None)  # else NO_COLOR would mean greys
        self.options = DashboardOptions() if options is None else options
        if self.options.reduced_motion:
            self.animation_level = "none"
        self.themes = Themes(self, chosen=self.options.theme)
        self.viewer = RunViewer(
            self.options, clock or MonotonicClock(), redraw=lambda: self.redraw(), call_later=self.call_later
        )
        self.controls = Controls(
            playback=Playback(self.viewer),
            fleet=FleetSelection(self.viewer),
            steering=Steering(self.viewer, ask=lambda question, then: self.push_screen(QuestionScreen(question), then)),
            say=self.viewer.show_message,
        )
        self._owned = source if owns_run else None
        self.viewer.open(source, start_at=start_at, path=self.options.recording)

    def get_default_screen(self) -> Screen[object]:
        return LiveScreen(self.viewer.frame(), self.controls, size=self.size)

    def get_driver_class(self) -> type[Driver]:
        return sgr_shortening_driver(super().get_driver_class())

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, lambda _: self.call_later(self._on_theme_changed))
        self.call_after_refresh(self._on_first_frame)
        self.set_interval(EXIT_POLL_SECONDS, self._exit_if_requested)  # also if no frame can be drawn any more
        if self.options.browse:
            self.call_after_refresh(self.action_recordings)

    def _on_theme_changed(self) -> None:
        self.themes.forget_styles()
        self.redraw()

    def _on_first_frame(self) -> None:
        if self.viewer.is_search:
            self.action_show_screen(SWEEP)
        if self.options.on_first_frame is not None:
            self.options.on_first_frame()
        self.set_interval(POLL_SECONDS, self.poll)
        self.set_interval(CLEAR_CACHE_SECONDS, clear_text_cache)
        self.set_interval(COLLECT_SECONDS, lambda: gc.collect())
        self.set_timer(PREPARE_SECONDS, self._prepare_screens)
        if self.options.read_sweep is not None:
            self.run_worker(load_sweeps(self.viewer, self.options.read_sweep))
        if self.options.baseline is not None:
            self.run_worker(load_baseline(self.viewer, self.options))

    def _prepare_screens(self) -> None:
        """Import the other screens, and merge the histograms of each stage, before the first key that needs them."""
        frame = self.viewer.frame()
        screen_type("distributions", frame)
        frame.per_stage()

    def _exit_if_requested(self) -> bool:
        result = "" if self.options.exit_requested is None else self.options.exit_requested()
        if result:
            self.exit(result)
        return bool(result)

    def poll(self) -> None:
        """Read what is new, move the playhead by the elapsed time, and redraw if something changed."""
        if not self._exit_if_requested() and self.viewer.advance():
            self.redraw()

    def redraw(self) -> None:
        """Draw the current frame now."""
        frame = self.viewer.frame()
        shown = [screen for screen in self.screen_stack if isinstance(screen, FrameScreen)]
        with self.batch_update():
            for screen in shown[-1:]:  # those below are hidden, but a change of them would repaint the whole screen
                screen.show(frame)

    def on_frame_screen_resumed(self) -> None:
        self.redraw()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        if self.options.reduced_motion and isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the entries of the command palette by what they act on: every key with its effect, then the themes."""
        for group, key in palette_entries(self._key_tables()):
            on_app = hasattr(self, f"action_{key.action.partition('(')[0]}")
            run = partial(self.run_action, key.action, self if on_app else screen)
            yield SystemCommand(palette_title(group, key.caption, key.tooltip), "", run)
        for name in THEMES:
            run_theme = partial(self.action_set_theme, name)
            yield SystemCommand(palette_title("Theme", "T", name), "", run_theme)

    def action_zoom(self) -> None:
        """Select the next time axis."""
        self.controls.playback.cycle_span()

    def action_next_metric(self) -> None:
        """Chart the next latency."""
        view, objectives = self.viewer.view, self.viewer.run.header.config.goodput
        following = (LATENCIES.index(view.metric) + 1) % len(LATENCIES)
        goodput = isinstance(self.screen, FrameScreen) and self.screen.has_goodput and bool(objectives)
        if goodput and following == 0 and not view.goodput:
            self.viewer.update_view(goodput=True)
        else:
            self.viewer.update_view(metric=LATENCIES[following], goodput=False)

    def action_heat(self) -> None:
        """Switch between the latency's heat map and its chart."""
        self.viewer.update_view(heat=not self.viewer.view.heat)

    def action_baseline(self) -> None:
        """Hide the baseline's lines and differences, or show them again."""
        if self.viewer.frame().baseline is None:
            self.viewer.show_message("no baseline: add --against FILE")
        else:
            self.viewer.update_view(baseline_shown=not self.viewer.view.baseline_shown)

    def action_curves(self) -> None:
        """Switch between ridges and cumulative curves of the distributions."""
        self.viewer.update_view(curves=not self.viewer.view.curves)

    def action_leave(self) -> None:
        """Remove the cursor; without one, remove the focus from the panel; without one, close the story."""
        if self.controls.playback.remove_cursor():
            return
        if self.screen.focused is None and not self.controls.fleet.close():
            self.controls.playback.hide_story()
        self.screen.set_focus(None)

    def action_show_screen(self, name: str) -> None:
        """Show one of the screens behind the number keys, above the live one."""
        if self.viewer.is_watch and name in OF_CLIENTS:
            self.viewer.show_message("a watch has no requests of its own: this screen needs them")
            return
        while len(self.screen_stack) > (1 if name == "live" else 2):
            self.pop_screen()
        if name != "live":
            show = self.switch_screen if len(self.screen_stack) > 1 else self.push_screen
            frame = self.viewer.frame()
            show(screen_type(name, frame)(frame, self.controls, size=self.size))
        forget_removed_widgets()

    def action_help(self) -> None:
        """Show keys and definitions."""
        from servetop.tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self._key_tables()))

    def _key_tables(self) -> Mapping[str, Sequence[Key]]:
        """Return the keys that have an effect in this run."""
        read_only = self.options.read_only
        if self.viewer.is_watch:
            return watch_tables(read_only=read_only, several=self.viewer.run.fleet is not None)
        return tables(read_only=read_only)

    def action_next_theme(self) -> None:
        """Apply the next theme."""
        self.action_set_theme(self.themes.next_name)

    def action_set_theme(self, name: str) -> None:
        """Apply a theme, and remember it for the next dashboard."""
        self.themes.set_theme(name)
        if self.options.remember_theme is not None:
            self.options.remember_theme(name)
        self.viewer.show_message(f"theme: {name}")

    def action_recordings(self) -> None:
        """Open the recordings browser."""
        from servetop.tui.screens.recordings_screen import RecordingsScreen

        if self.options.store is None:
            self.viewer.show_message("no recordings folder to browse")
            return
        shown = self.viewer.source.name
        screen = RecordingsScreen(self.options.store, on_screen=shown, read_only=self.options.read_only)
        self.push_screen(screen, self._open_recording)

    def _open_recording(self, path: Path | None) -> None:
        if path is None or self.options.store is None:
            return
        try:
            source = self.options.store.open(path)
        except ServetopError as error:
            self.viewer.show_message(str(error))
            return
        self.viewer.open(source, path=path)  # an owned run continues, and quitting still asks what should happen to it
        self.action_show_screen(SWEEP if self.viewer.is_search else "live")
        self.redraw()

    def action_save_picture(self) -> None:
        """Save a picture of the screen."""
        self.run_worker(save_picture(self.viewer, self.export_screenshot()))

    def action_write_report(self) -> None:
        """Write the report of the recording on the screen."""
        self.run_worker(write_report(self.viewer))

    async def action_quit(self) -> None:
        """Ask what should happen to an owned run that is live; a repeated Ctrl-C cancels it."""
        if isinstance(self.screen, QuestionScreen):
            self.screen.dismiss(self.screen.when_repeated)
        elif self._owned is not None and self._owned.is_live():
            watched = self._owned.header.config.watch is not None
            self.push_screen(QuestionScreen(QUIT_WATCH if watched else QUIT_RUN), self._quit)
        else:
            self.exit("detach" if self.viewer.source.is_live() else "ended")

    def _quit(self, answer: str | None) -> None:
        if answer is None:
            return
        self.viewer.source = self._owned or self.viewer.source
        must_send = answer in STOP_ACTIONS and self.viewer.source.is_live()
        self.exit(f"{answer} by signal" if must_send and not self.controls.steering.end_run(answer) else answer)


def _action_search() -> type[Provider]:
    """Return the entries of the palette, imported when it is first opened."""
    from servetop.tui.screens.action_search import ActionSearch

    return ActionSearch


def run_dashboard(
    source: RunSource, *, start_at: float | None = None, owns_run: bool = False, options: DashboardOptions | None = None
) -> str:
    """Show a run until the user quits; returns the app's result, empty if the dashboard failed."""
    app = DashboardApp(source, start_at=start_at, owns_run=owns_run, options=options)
    app.themes.adapt_to_terminal()
    gc.freeze()  # modules and ticks stay: a full collection of them takes 30 ms
    gc.set_threshold(*gc.get_threshold()[:2], _NEVER)
    gc.enable()
    return app.run() or ""
