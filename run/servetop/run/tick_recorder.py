"""What the run itself has to say, kept until the next tick takes it to the recording."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from servetop.core.clock import Clock
from servetop.core.events import Command, Note, RequestRecord, Severity, StageChange
from servetop.core.tick import ClientTick, Tick
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.run.engine_session import EngineSession
from servetop.run.process.recording_trouble import RECORDER, alert_line

Alert = Callable[[str], None]
"""Takes a line that a person must see at once."""


class TickRecorder:
    """Joins the senders' side, the engine's side and the run's own notes into one batch a tick."""

    def __init__(self, recorder: Recorder, engine: EngineSession, *, clock: Clock, alert: Alert) -> None:
        self._recorder = recorder
        self._alert = alert
        self._engine = engine
        self._clock = clock
        self._notes: list[Note] = []
        self._replies: list[Command] = []
        self.trouble = ""
        """Why the recording cannot be written now; empty while it can."""
        self._failing: str | None = None
        self._place = recorder.path

    def note(self, severity: Severity, source: str, *, text: str) -> None:
        """Put a remark on the time line."""
        self._notes.append(Note(at=self._clock.now(), severity=severity, source=source, text=text))

    def reply(self, command: Command, words: str) -> None:
        """Say what became of a command."""
        self._replies.append(dataclasses.replace(command, obeyed_at=self._clock.now(), reply=words))

    def commit(
        self,
        client: ClientTick | None,
        *,
        requests: Sequence[RequestRecord] = (),
        stages: Sequence[StageChange] = (),
        notes: Sequence[Note] = (),
        replies: Sequence[Command] = (),
    ) -> None:
        """Write one tick (or, without `client`, what is left over) with everything that came in since the last."""
        self._note_trouble_with_file()
        news = self._engine.take_update()
        batch = TickTransaction(
            tick=None if client is None else self._tick(client),
            requests=requests,
            stages=stages,
            engine_samples=news.samples,
            replica_samples=news.replicas,
            gpu_samples=news.gpus,
            notes=[*self._notes, *news.notes, *notes],
            log_lines=news.log_lines,
            commands=[*self._replies, *replies],
        )
        self._notes, self._replies = [], []
        self._recorder.commit(batch)

    def _tick(self, client: ClientTick) -> Tick:
        return Tick(client=client, engine=self._engine.newest_sample(), gpus=self._engine.newest_gpus())

    def _note_trouble_with_file(self) -> None:
        """Once when it begins, and once when it is over; at once too, for a note that cannot be written is not seen."""
        failing, place = self._recorder.failing, self._recorder.path
        if failing != self._failing:
            self.trouble = f"{failing}: the run goes on" if failing else ""
            words = self.trouble or "the recording can be written again"
            self._say(Severity.ERROR if failing else Severity.INFO, words)
        if place != self._place:
            self._say(Severity.WARNING, f"the recording was moved: it goes on in {place}")
        self._failing, self._place = failing, place

    def _say(self, severity: Severity, words: str) -> None:
        self.note(severity, RECORDER, text=words)
        self._alert(alert_line(severity, RECORDER, words))
