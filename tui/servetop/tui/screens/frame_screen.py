"""The base class of screens that show frames of a run and handle the keys that move through it or steer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen

from servetop.core.events import Action
from servetop.tui.drawing.palette import STYLES
from servetop.tui.fleet.fleet_selection import FleetSelection
from servetop.tui.keys import MOVING, STEERING, bindings
from servetop.tui.panels.footer import ScreenLine
from servetop.tui.panels.header import HeaderLine
from servetop.tui.panels.live.diagnosis import DiagnosisLine
from servetop.tui.panels.live.timeline import TimelinePanel
from servetop.tui.panels.panel import Panel
from servetop.tui.panels.tabs import TabLine
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.playback import Playback
from servetop.tui.screens.question import NoteQuestion, TimeQuestion
from servetop.tui.state.frame import Frame
from servetop.tui.steering import Steering


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What the keys of a screen act on."""

    playback: Playback
    steering: Steering
    fleet: FleetSelection
    say: Callable[[str], None]
    """Shows one line at the bottom for a few seconds."""


class FrameScreen(Screen[object]):
    """Passes each frame to all panels on it; subclasses compose them.

    The styles of drawings are its component classes: the style sheet is matched with them once, not for every panel.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = set(STYLES)
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(STEERING, MOVING)]
    tab: ClassVar[str] = ""
    """The screen's name in `keys.TABS`."""
    own_keys: ClassVar[Sequence[tuple[str, str]]] = ()
    """Keys of this screen for the bottom line, most important first."""
    has_goodput: ClassVar[bool] = False
    """Whether the key for the next latency selects goodput too."""
    time_axis: ClassVar[bool] = False
    """Whether its charts have the shared time axis, whose length is shown."""

    class Resumed(Message):
        """The screen is visible again, after another one covered it."""

    def __init__(
        self, first: Frame, controls: Controls, *, size: Size | None = None, classes: Sequence[str] = ()
    ) -> None:
        """`first` is shown until the next frame.

        The terminal's `size` gives the classes of the breakpoints, as Textual sets them after the first layout: a later
        change of classes would match all panels with the style sheet again.
        """
        breakpoints = (self.HORIZONTAL_BREAKPOINTS, self.VERTICAL_BREAKPOINTS)
        fits = [_breakpoint(*each) for each in zip(breakpoints, size, strict=True)] if size else []
        super().__init__(classes=" ".join([*fits, *classes]))
        self.controls = controls
        self._first = first
        self._covered = False

    def compose(self) -> ComposeResult:
        yield HeaderLine(id="header")
        yield TabLine(self.tab, id="tabs")
        yield DiagnosisLine(id="diagnosis")
        yield from self.panels()
        yield ScreenLine(self.own_keys, time_axis=self.time_axis, id="keys")

    def panels(self) -> ComposeResult:
        """Yield the panels between the diagnosis and the bottom line."""
        yield from ()

    def on_mount(self) -> None:
        self.show(self._first)

    def on_screen_suspend(self) -> None:
        self._covered = True

    def on_screen_resume(self) -> None:
        if self._covered:
            self._covered = False
            self.post_message(self.Resumed())

    def show(self, frame: Frame) -> None:
        """Draw a frame."""
        for panel in self.query(Panel):
            panel.frame = frame

    # Keys that mean one thing at the live edge, another in the past or after the end.

    def action_toggle_clock(self) -> None:
        """Hold or continue the ramp at the live edge; else play or pause."""
        if self.controls.steering.at_live_edge:
            self.controls.steering.toggle_hold()
        else:
            self.controls.playback.toggle()

    def action_bracket(self, direction: int) -> None:
        """Lower or raise the concurrency limit at the live edge; else go to the previous or next event."""
        if self.controls.steering.at_live_edge:
            self.controls.steering.step_concurrency(direction)
        else:
            self.controls.playback.go_to_event(direction)

    def action_arrow(self, direction: int) -> None:
        """Raise (-1, up) or lower (1, down) the request rate a little."""
        self.controls.steering.scale_rate(0.95 if direction > 0 else 1.05)

    # Steering.

    def action_scale_rate(self, factor: float) -> None:
        """Multiply the request rate."""
        self.controls.steering.scale_rate(factor)

    def action_step_batch_size(self, direction: int) -> None:
        """Lower (-1) or raise (1) the engine's batch size."""
        self.controls.steering.step_batch_size(direction)

    def action_pause_load(self) -> None:
        """Pause the load, or resume it."""
        self.controls.steering.toggle_pause()

    def action_next_stage(self) -> None:
        """End this stage now."""
        self.controls.steering.request_action(Action.NEXT_STAGE)

    def action_previous_stage(self) -> None:
        """Repeat the previous stage."""
        self.controls.steering.request_action(Action.PREVIOUS_STAGE)

    def action_burst(self) -> None:
        """Send about one second's worth of requests at once."""
        self.controls.steering.burst()

    def action_switch_search(self) -> None:
        """Hand the load to a search, or take it back."""
        self.controls.steering.switch_search()

    def action_switch_loop(self) -> None:
        """Switch from an open loop to a closed one, or back."""
        self.controls.steering.switch_loop()

    def action_mark(self) -> None:
        """Ask for a note, then mark this time with it."""
        if self.controls.steering.check():
            self.app.push_screen(NoteQuestion(), self.controls.steering.mark)

    def action_stop(self) -> None:
        """Ask how to stop the run; cancel it if it is already draining."""
        self.controls.steering.stop()

    # Playback.

    def action_seek(self, seconds: float) -> None:
        """Move the cursor if it is shown, else the playhead."""
        self.controls.playback.seek(seconds)

    def action_step(self, ticks: int) -> None:
        """Move by ticks, and pause."""
        self.controls.playback.step(ticks)

    def action_go_to_start(self) -> None:
        """Move to second 0."""
        self.controls.playback.go_to_start()

    def action_go_to_edge(self) -> None:
        """Move to the newest tick, and follow it."""
        self.controls.playback.go_to_edge()

    def action_scale_speed(self, factor: float) -> None:
        """Multiply the playing speed."""
        self.controls.playback.scale_speed(factor)

    def action_enter_time(self) -> None:
        """Ask for a time, and go there."""
        self.app.push_screen(TimeQuestion(edge=self.controls.playback.edge), self.controls.playback.go_to)

    def action_toggle_cursor(self) -> None:
        """Show the cursor at the playhead, or remove it."""
        self.controls.playback.toggle_cursor()

    def on_tab_line_chosen(self, message: TabLine.Chosen) -> None:
        self.call_later(self.run_action, f"app.show_screen('{message.screen}')")

    def on_timeline_panel_chosen(self, message: TimelinePanel.Chosen) -> None:
        self.controls.playback.go_to_share(message.share)

    def on_time_chart_pointed(self, message: TimeChart.Pointed) -> None:
        self.controls.playback.point_at(message.at, pressed=message.pressed, latency=message.latency)

    def on_time_chart_zoomed(self, message: TimeChart.Zoomed) -> None:
        self.controls.playback.zoom(message.direction)


def _breakpoint(classes: Sequence[tuple[int, str]] | None, cells: int) -> str:
    """Return the class that Textual sets on a screen of that many cells; empty without breakpoints."""
    return max((each for each in classes or () if each[0] <= cells), default=(0, ""))[1]
