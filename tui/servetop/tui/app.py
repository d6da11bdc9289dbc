"""The dashboard: reads a run from a source, shows it at the playhead, and sends what the keys ask for."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.screen import Screen

from servetop.analysis.live_stats import LATENCIES
from servetop.core.clock import Clock, MonotonicClock
from servetop.core.errors import ServetopError
from servetop.core.events import Action
from servetop.core.interfaces.run_source import RunSource, RunUpdate
from servetop.tui.appearance import CALM_REDRAW_SECONDS, DashboardOptions
from servetop.tui.drawing.rich_cache import FORGET_SECONDS, forget_drawn_text
from servetop.tui.keys import MOVING, STEERING, VIEWING, bindings
from servetop.tui.more_actions import MoreActions
from servetop.tui.playback import Playback
from servetop.tui.screens.frame_screen import FrameScreen
from servetop.tui.screens.live import LiveScreen
from servetop.tui.screens.question import Choice, NoteQuestion, QuestionScreen
from servetop.tui.state import command_requests
from servetop.tui.state.command_requests import CommandRequest, Rejected
from servetop.tui.state.frame import Frame, View
from servetop.tui.state.playhead import Playhead
from servetop.tui.state.run_state import CLOSED_TICKS, LIVE_TICKS, RunState
from servetop.tui.state.scratch_file import ScratchFile

POLL_SECONDS = 0.05
LEAVE_SECONDS = 0.5
"""Between two looks whether it is to end."""
REDRAW_SECONDS = 0.25
MOST_TICKS = 4_000
"""Read at once, so that opening a recording of a day needs no more memory than one of an hour."""
_MESSAGE_SECONDS = 5.0

QUIT_CHOICES = (
    Choice(key="d", label="drain and quit", result="stop", hint="send nothing more, let requests finish"),
    Choice(key="c", label="cancel and quit", result="cancel", hint="give up the requests in flight"),
    Choice(key="l", label="leave it running", result="detach", hint="close the dashboard only"),
)


class DashboardApp(Playback, MoreActions):
    """Shows one run. Its result says how it was left: `stop`, `cancel`, `detach`, `ended`, or what it was asked.

    Where the disk did not take the command, it is `stop by signal` or `cancel by signal`.
    """

    CSS_PATH = "dashboard.tcss"
    TITLE = "servetop"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(STEERING, MOVING, VIEWING)]
    ESCAPE_TO_MINIMIZE = False

    def __init__(
        self, source: RunSource, *, start_at: float | None = None, owns_run: bool = False, clock: Clock | None = None,
        options: DashboardOptions | None = None,
    ) -> None:  # fmt: skip
        """`owns_run`: quitting ends the run, so it asks first. `start_at`: open at that second of the run."""
        super().__init__(options or DashboardOptions())
        self._owned = source if owns_run else None
        self._first_shown = source.name
        self._clock = MonotonicClock() if clock is None else clock
        self.open_run(source, start_at)
        self._polled_at = self._drawn_at = self._clock.now()
        self._message_until = 0.0

    def open_run(self, source: RunSource, start_at: float | None) -> None:
        """Take in all that there is of a run; `start_at` as above."""
        self._source = source
        self._live = source.is_live()
        keep = LIVE_TICKS if self._live else CLOSED_TICKS
        self._run = RunState(source.header, read=self._past_ticks, keep=keep, scratch=ScratchFile())
        update = RunUpdate(more=True)
        while update.more:
            update = source.poll(most_ticks=MOST_TICKS)
            self._run.fold(update)
        load_at = self._run.stages[0].at if self._run.stages else None
        playhead = Playhead.opened(edge=self._run.edge, growing=self._live, start_at=start_at, load_at=load_at)
        self._view = View(playhead=playhead)

    def get_default_screen(self) -> Screen[object]:
        """The live screen."""
        return LiveScreen(self._frame(), self.size)

    def on_mount(self) -> None:
        """Look for more twenty times a second."""
        self.theme_changed_signal.subscribe(self, lambda _: self.call_later(self.redraw))
        self.call_after_refresh(self._shown)
        self.set_interval(LEAVE_SECONDS, self._exit_if_requested)  # also where no frame can be drawn any more
        if self.options.browse:
            self.call_after_refresh(self.action_recordings)

    def _shown(self) -> None:
        """The first frame is drawn: from now on it moves."""
        if self.options.shown is not None:
            self.options.shown()
        self.set_interval(POLL_SECONDS, self.poll)
        self.set_interval(FORGET_SECONDS, forget_drawn_text)

    def _exit_if_requested(self) -> bool:
        asked = self.options.exit_requested
        answer = "" if asked is None else asked()
        if answer:
            self.exit(answer)
        return bool(answer)

    def poll(self) -> None:
        """Take in what is new, move the playhead by the time gone by, and redraw when something changed."""
        if self._exit_if_requested():
            return
        now = self._clock.now()
        elapsed, self._polled_at = now - self._polled_at, now
        changed = self._take_in() | self._hear()
        before = self._view
        message = self._view.message if now < self._message_until else ""
        playhead = self._view.playhead.advanced(elapsed, edge=self._run.edge)
        self._view = replace(self._view, playhead=playhead, message=message)
        calm = self.options.reduced_motion
        urgent = (changed and playhead.following and not calm) or message != before.message
        pace = CALM_REDRAW_SECONDS if calm else REDRAW_SECONDS
        if urgent or (now - self._drawn_at >= pace and (changed or self._has_moved())):
            self.redraw()

    def redraw(self) -> None:
        """Show the run at the playhead, now."""
        self._drawn_at = self._clock.now()
        frame = self._frame()
        shown = [screen for screen in self.screen_stack if isinstance(screen, FrameScreen)]
        with self.batch_update():
            for screen in shown[-1:]:  # those below are hidden, yet a change of them would repaint the whole screen
                screen.show(frame)

    def on_frame_screen_resumed(self) -> None:
        """It may show what was before it was covered."""
        self.redraw()

    def _frame(self) -> Frame:
        self._drawn, self._live = self._view, self._source.is_live()
        frame = self._run.at(self._view, live=self._live)
        return replace(frame, requests=self._requests, read_only=self.options.read_only)

    def _has_moved(self) -> bool:
        return self._drawn != self._view or self._live != self._source.is_live()

    def _take_in(self) -> bool:
        try:
            return self._run.fold(self._source.poll(most_ticks=MOST_TICKS))
        except ServetopError as error:
            self.show_message(str(error))
            return False

    def _hear(self) -> bool:
        """Take in what the first run says past its recording, while it is the one on the screen."""
        unrecorded = self.options.unrecorded
        if unrecorded is None or self._source.name != self._first_shown:
            return False
        return self._run.run_notes.add_unrecorded(unrecorded())

    def show_message(self, text: str) -> None:
        """One line for a few seconds, at the bottom."""
        self._message_until = self._clock.now() + _MESSAGE_SECONDS
        self._view = replace(self._view, message=text)
        self.redraw()

    def update_view(self, **changes: Any) -> None:
        self._view = replace(self._view, **changes)
        self.redraw()

    # Steering: each key works out a wish, and sends it if the run can still be steered.

    def ask(self, request: CommandRequest | Rejected, *, text: str = "") -> None:
        """Send a wish, after its question if it has one; say why when that cannot be done."""
        if not self.may_steer():
            return
        if isinstance(request, Rejected):
            self.show_message(request.why)
        elif request.question:
            agreed = Choice(key="y", label="yes, restart it", result="yes")
            self.push_screen(QuestionScreen(request.question, [agreed]), lambda answer: self._answered(answer, request))
        else:
            self._send(request, text)

    def _answered(self, answer: str | None, request: CommandRequest) -> None:
        if answer == "yes":
            self._send(request, "")

    def _send(self, request: CommandRequest, text: str) -> bool:
        """Whether the run will hear of it."""
        try:
            self._source.send(request.action, value=request.value, text=text)
        except ServetopError as error:
            self.show_message(str(error))
            return False
        if request.value is not None:
            self._run.requested[request.action] = request.value
        self._take_in()
        self.update_view(message="")
        return True

    def action_toggle_clock(self) -> None:
        """Space: the ramp's clock while the run is watched at its edge, else the playhead's."""
        if self.steers and self._view.playhead.following:
            held = self._run.target.gauges.holding
            self.ask(CommandRequest(action=Action.CONTINUE_STAGES if held else Action.HOLD_STAGE))
        else:
            self.update_view(playhead=self._view.playhead.toggled(edge=self._run.edge))

    def action_pause_load(self) -> None:
        """Pause, or resume."""
        paused = self._run.target.gauges.paused
        self.ask(CommandRequest(action=Action.RESUME_LOAD if paused else Action.PAUSE_LOAD))

    def action_scale_rate(self, factor: float) -> None:
        """Multiply the request rate."""
        self.ask(command_requests.scaled_rate(self._run.target, factor))

    def action_step_concurrency(self, direction: int) -> None:
        """Lower (-1) or raise (1) the concurrency limit."""
        self.ask(command_requests.stepped_concurrency(self._run.target, direction))

    def action_step_batch_size(self, direction: int) -> None:
        """Lower (-1) or raise (1) the engine's batch size."""
        self.ask(command_requests.stepped_batch_size(self._run.target, direction))

    def action_next_stage(self) -> None:
        """End this stage now."""
        self.ask(CommandRequest(action=Action.NEXT_STAGE))

    def action_burst(self) -> None:
        """About a second's worth of requests at once."""
        self.ask(command_requests.burst(self._run.target))

    def action_mark(self) -> None:
        """Ask for a note, then mark this instant with it."""
        if self.may_steer():
            self.push_screen(NoteQuestion(), self._marked)

    def _marked(self, note: str | None) -> None:
        if note is not None:
            self.ask(CommandRequest(action=Action.MARK), text=note)

    def action_next_metric(self) -> None:
        """The next latency on the chart."""
        self.update_view(metric=LATENCIES[(LATENCIES.index(self._view.metric) + 1) % len(LATENCIES)])

    def action_heat(self) -> None:
        """Heat map or chart of the latency."""
        self.update_view(heat=not self._view.heat)

    def action_show_screen(self, name: str) -> None:
        """One of the screens behind the number keys, over the live one."""
        while len(self.screen_stack) > 1:
            self.pop_screen()
        if name != "live":
            self.push_screen(_screen(name, self._frame()))

    def action_help(self) -> None:
        """Keys and definitions."""
        from servetop.tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(read_only=self.options.read_only))

    async def action_quit(self) -> None:
        """Ask what becomes of a run that is ours and goes on; a second ctrl+c while asking cancels it."""
        if isinstance(self.screen, QuestionScreen):
            self.screen.dismiss(self.screen.when_repeated)
        elif self._owned is not None and self._owned.is_live():
            question = QuestionScreen(
                "The run is still active. What should happen to it?", QUIT_CHOICES, when_repeated="cancel"
            )
            self.push_screen(question, self._left)
        else:
            self.exit("detach" if self._source.is_live() else "ended")

    def _left(self, answer: str | None) -> None:
        if answer is None:
            return
        actions = {"stop": Action.STOP, "cancel": Action.CANCEL}
        self._source = self._owned or self._source
        unsent = (
            answer in actions and self._source.is_live() and not self._send(CommandRequest(action=actions[answer]), "")
        )
        self.exit(f"{answer} by signal" if unsent else answer)


def _screen(name: str, frame: Frame) -> FrameScreen:
    """Loaded when first looked at: start-up is for the live screen."""
    from servetop.tui.screens import details, log_screen, requests_screen

    kinds: dict[str, type[FrameScreen]] = {
        "requests": requests_screen.RequestsScreen,
        "distributions": details.DistributionsScreen,
        "sweep": details.SweepScreen,
        "log": log_screen.LogScreen,
        "config": details.ConfigScreen,
    }
    return kinds[name](frame)


def run_dashboard(
    source: RunSource,
    *,
    start_at: float | None = None,
    owns_run: bool = False,
    options: DashboardOptions | None = None,
) -> str:
    """Show a run until the user quits; how that was (see DashboardApp), or empty when the dashboard failed."""
    app = DashboardApp(source, start_at=start_at, owns_run=owns_run, options=options)
    app.adapt_to_terminal()
    gc.freeze()  # modules and ticks stay: a full collection of them every few seconds takes 30 ms from a frame
    gc.enable()
    return app.run() or ""
