"""Further actions: another run to watch, open and closed loops, the stage before, stopping."""

from __future__ import annotations

from pathlib import Path

from servetop.core.errors import ServetopError
from servetop.core.events import Action
from servetop.core.interfaces.run_source import RunSource
from servetop.tui.appearance import Appearance
from servetop.tui.screens.question import Choice, QuestionScreen
from servetop.tui.state import command_requests
from servetop.tui.state.command_requests import CommandRequest, Rejected
from servetop.tui.state.run_state import RunState

STOP_CHOICES = (
    Choice(key="d", label="drain and stop", result="stop", hint="send nothing more, let requests finish"),
    Choice(key="c", label="cancel and stop", result="cancel", hint="give up the requests in flight"),
)


class MoreActions(Appearance):
    """Mixed into the dashboard, which has the run."""

    _run: RunState
    _source: RunSource

    def ask(self, request: CommandRequest | Rejected, *, text: str = "") -> None:
        """Send a wish, after its question if it has one."""
        raise NotImplementedError

    def open_run(self, source: RunSource, start_at: float | None) -> None:
        """Take a run in, from its beginning or at its edge."""
        raise NotImplementedError

    def may_steer(self) -> bool:
        """The run goes on, and keys may steer it; says why not."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Show the run at the playhead, now."""
        raise NotImplementedError

    def action_show_screen(self, name: str) -> None:
        """One of the screens behind the number keys."""
        raise NotImplementedError

    # Steering.

    def action_previous_stage(self) -> None:
        """Play the stage before this one again."""
        self.ask(CommandRequest(action=Action.PREVIOUS_STAGE))

    def action_switch_loop(self) -> None:
        """Open loop to closed, or back."""
        self.ask(command_requests.switched_loop(self._run.target))

    def action_stop(self) -> None:
        """Ask how; once it drains, the same key cancels."""
        stopping = any(command.action is Action.STOP for command in self._run.commands.values())
        if not self.may_steer():
            return
        if stopping:
            self.ask(CommandRequest(action=Action.CANCEL))
        else:
            question = QuestionScreen("Stop this run? The dashboard stays open.", STOP_CHOICES)
            self.push_screen(question, self._stop_answered)

    def _stop_answered(self, answer: str | None) -> None:
        actions = {"stop": Action.STOP, "cancel": Action.CANCEL}
        if answer in actions:
            self.ask(CommandRequest(action=actions[answer]))

    # Other recordings.

    def action_recordings(self) -> None:
        """Choose another run to watch."""
        from servetop.tui.screens.recordings_screen import RecordingsScreen

        store = self.options.store
        if store is None:
            self.show_message("there is no recordings folder to look into")
            return
        self.push_screen(
            RecordingsScreen(store, on_screen=self._source.name, read_only=self.options.read_only), self._chosen
        )

    def _chosen(self, path: Path | None) -> None:
        store = self.options.store
        if path is None or store is None:
            return
        try:
            source = store.open(path)
        except ServetopError as error:
            self.show_message(str(error))
            return
        self.open_run(source, None)  # a run that is ours goes on, and quitting still asks what becomes of it
        self.action_show_screen("live")
        self.redraw()
