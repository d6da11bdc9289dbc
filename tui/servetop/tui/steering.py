"""Steers a live run: turns keys into commands, confirms the expensive ones, and sends them. Independent of Textual."""

from __future__ import annotations

from collections.abc import Callable

from servetop.core.errors import ServetopError
from servetop.core.events import Action
from servetop.core.interfaces.search_state import SEARCH_COMMANDS, SEARCH_REFUSES
from servetop.tui.run_viewer import RunViewer
from servetop.tui.state import command_requests
from servetop.tui.state.command_requests import (
    NO_LOAD,
    NOTHING_TO_STEER,
    READ_ONLY,
    Choice,
    CommandRequest,
    CommandTarget,
    Question,
    Rejected,
)

STOP_ACTIONS = {"stop": Action.STOP, "cancel": Action.CANCEL}
"""What a choice to end the run sends, by its result."""
_STOP_QUESTION = Question(
    text="Stop this run? The dashboard stays open.",
    choices=(
        Choice(key="d", label="drain and stop", result="stop", hint="send nothing more, let requests finish"),
        Choice(key="c", label="cancel and stop", result="cancel", hint="cancel the requests in flight"),
    ),
)
_RESTART_CHOICES = (Choice(key="y", label="yes, restart it", result="yes"),)

Ask = Callable[[Question, Callable[[str | None], None]], object]
"""Shows a question and calls back with the result of the choice, None if the user goes back."""


class Steering:
    """Sends commands to the run that a viewer shows."""

    def __init__(self, viewer: RunViewer, *, ask: Ask) -> None:
        self._viewer = viewer
        self._ask = ask

    @property
    def _target(self) -> CommandTarget:
        return self._viewer.run.target

    @property
    def at_live_edge(self) -> bool:
        """The run can be steered, and the playhead follows its newest tick."""
        return self._viewer.can_steer and self._viewer.view.playhead.following

    def check(self) -> bool:
        """Whether the run can be steered; shows the reason if not."""
        if not self._viewer.can_steer:
            reason = READ_ONLY if self._viewer.source.is_live() else NOTHING_TO_STEER
            self._viewer.show_message(NO_LOAD if self._viewer.is_watch else reason)
        return self._viewer.can_steer

    def request(self, request: CommandRequest | Rejected, *, text: str = "") -> None:
        """Send a command, after its question if it has one; shows the reason if it was rejected."""
        if not self.check():
            return
        taken = isinstance(request, CommandRequest) and request.action in SEARCH_COMMANDS
        if self._viewer.search_chooses and not taken:
            self._viewer.show_message(SEARCH_REFUSES)
        elif isinstance(request, Rejected):
            self._viewer.show_message(request.why)
        elif request.question:
            question = Question(text=request.question, choices=_RESTART_CHOICES)
            self._ask(question, lambda answer: self._confirmed(answer, request))
        else:
            self._send(request, text)

    def request_action(self, action: Action) -> None:
        """Send a command without a value."""
        self.request(CommandRequest(action=action))

    def _confirmed(self, answer: str | None, request: CommandRequest) -> None:
        if answer == "yes":
            self._send(request, "")

    def _send(self, request: CommandRequest, text: str) -> bool:
        """Whether the command reached the run."""
        try:
            self._viewer.source.send(request.action, value=request.value, text=text)
        except ServetopError as error:
            self._viewer.show_message(str(error))
            return False
        if request.value is not None:
            self._viewer.run.requested[request.action] = request.value
        self._viewer.read_updates()
        self._viewer.update_view(message="")
        return True

    def end_run(self, choice: str) -> bool:
        """Send the command that ends the run, `stop` or `cancel`; whether it reached the run."""
        return self._send(CommandRequest(action=STOP_ACTIONS[choice]), "")

    def toggle_hold(self) -> None:
        """Hold the ramp at this stage, or continue it."""
        held = self._target.gauges.holding
        self.request_action(Action.CONTINUE_STAGES if held else Action.HOLD_STAGE)

    def toggle_pause(self) -> None:
        """Pause the load, or resume it."""
        self.request_action(Action.RESUME_LOAD if self._target.gauges.paused else Action.PAUSE_LOAD)

    def scale_rate(self, factor: float) -> None:
        """Multiply the request rate."""
        self.request(command_requests.scaled_rate(self._target, factor))

    def step_concurrency(self, direction: int) -> None:
        """Lower (-1) or raise (1) the concurrency limit."""
        self.request(command_requests.stepped_concurrency(self._target, direction))

    def step_batch_size(self, direction: int) -> None:
        """Lower (-1) or raise (1) the engine's batch size."""
        self.request(command_requests.stepped_batch_size(self._target, direction))

    def burst(self) -> None:
        """Send about one second's worth of requests at once."""
        self.request(command_requests.burst(self._target))

    def switch_loop(self) -> None:
        """Switch from an open loop to a closed one, or back."""
        self.request(command_requests.switched_loop(self._target))

    def switch_search(self) -> None:
        """Hand the load to a search for the largest one within the objectives, or take it back."""
        self.request_action(Action.SEARCH)

    def mark(self, note: str | None) -> None:
        """Mark this time with a note; None does nothing."""
        if note is not None:
            self.request(CommandRequest(action=Action.MARK), text=note)

    def stop(self) -> None:
        """Ask whether to drain or cancel; cancels at once if the run is already draining."""
        if not self.check():
            return
        if any(command.action is Action.STOP for command in self._viewer.run.commands.values()):
            self.request_action(Action.CANCEL)
        else:
            self._ask(_STOP_QUESTION, self._stop)

    def _stop(self, answer: str | None) -> None:
        if answer in STOP_ACTIONS:
            self.request_action(STOP_ACTIONS[answer])
