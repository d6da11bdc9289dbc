"""Writes each tick to the recording, with the notes and replies of the run since the last one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

from servetop.core.clock import Clock
from servetop.core.events import Command, Note, RequestRecord, Severity, StageChange
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.interfaces.search_state import SearchState
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.tick import ClientTick, Tick
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.run.loop.engine_update import RecordedEngine
from servetop.run.process.recording_trouble import RECORDER, alert_line

Alert = Callable[[str], None]
"""Shows a line to the user at once."""


class TickListener(Protocol):
    """Takes everything that is recorded, when it is, such as the metrics of the run."""

    def take(self, transaction: TickTransaction) -> None:
        """Take what a tick adds to the recording."""
        ...

    def set_engine(self, facts: EngineFacts) -> None:
        """Take what is known of the engine."""
        ...


class TickRecorder:
    """Joins the reports of the senders, the updates of the engine and the notes of the run into one transaction."""

    def __init__(self, recorder: Recorder, engine: RecordedEngine, *, clock: Clock, alert: Alert) -> None:
        self._recorder = recorder
        self._alert = alert
        self._engine = engine
        self._clock = clock
        self._notes: list[Note] = []
        self._replies: list[Command] = []
        self._stages: list[StageChange] = []
        self._search_states: list[SearchState] = []
        self._skipped: list[SkippedCell] = []
        self.trouble = ""
        """Why the recording cannot be written at the moment; empty while it can."""
        self._failing: str | None = None
        self._path = recorder.path
        self.listener: TickListener | None = None
        """Takes what is recorded from now on; None: nothing does."""

    def note(self, severity: Severity, source: str, *, text: str) -> None:
        """Add a note to the timeline."""
        self._notes.append(Note(at=self._clock.now(), severity=severity, source=source, text=text))

    def add_note(self, note: Note) -> None:
        """Add a note with a time and a fact of its own."""
        self._notes.append(note)

    def add_search_state(self, state: SearchState) -> None:
        """Record what a search knows, and which load follows."""
        self._search_states.append(state)

    def set_engine(self, facts: EngineFacts) -> None:
        """Record what is known of the engine, or replace it after a restart."""
        self._recorder.set_engine(facts)
        if self.listener is not None:
            self.listener.set_engine(facts)

    def set_random_tokens(self, tokens: str) -> None:
        """Record what prompts of random token ids consist of: `ordinary` or `unchecked` tokens."""
        self._recorder.set_random_tokens(tokens)

    def add_stage(self, stage: StageChange) -> None:
        """Record a change of the stage that the senders do not report."""
        self._stages.append(stage)

    def add_skipped(self, cell: SkippedCell) -> None:
        """Record a cell of a sweep that is not measured."""
        self._skipped.append(cell)

    def reply(self, command: Command, text: str) -> None:
        """Record the reply to a command."""
        self._replies.append(dataclasses.replace(command, applied_at=self._clock.now(), reply=text))

    def commit(
        self,
        client: ClientTick | None,
        *,
        requests: Sequence[RequestRecord] = (),
        in_flight: Sequence[RequestInFlight] | None = None,
        stages: Sequence[StageChange] = (),
        notes: Sequence[Note] = (),
        replies: Sequence[Command] = (),
    ) -> None:
        """Write one tick, or without `client` the remainder, with everything received since the last."""
        self._note_file_trouble()
        update = self._engine.take_update()
        transaction = TickTransaction(
            tick=None if client is None else self._tick(client),
            requests=requests,
            in_flight=in_flight,
            stages=[*self._stages, *stages],
            skipped=self._skipped,
            notes=[*self._notes, *update.notes, *notes],
            engine_samples=update.samples,
            replica_samples=update.replicas,
            replica_changes=update.changes,
            engine_series=update.series,
            gpu_samples=update.gpus,
            log_lines=update.log_lines,
            search_states=self._search_states,
            commands=[*self._replies, *replies],
        )
        self._notes, self._replies, self._stages = [], [], []
        self._skipped, self._search_states = [], []
        self._recorder.commit(transaction)
        if self.listener is not None:
            self.listener.take(transaction)

    def _tick(self, client: ClientTick) -> Tick:
        return Tick(client=client, engine=self._engine.newest_sample(), gpus=self._engine.newest_gpus())

    def _note_file_trouble(self) -> None:
        """Note when writing starts to fail and when it works again; also alert, as that note may not be written."""
        failing, path = self._recorder.failing, self._recorder.path
        if failing != self._failing:
            self.trouble = f"{failing}: the run continues" if failing else ""
            text = self.trouble or "the recording can be written again"
            self._alert_and_note(Severity.ERROR if failing else Severity.INFO, text)
        if path != self._path:
            self._alert_and_note(Severity.WARNING, f"the recording was moved: it continues in {path}")
        self._failing, self._path = failing, path

    def _alert_and_note(self, severity: Severity, text: str) -> None:
        self.note(severity, RECORDER, text=text)
        self._alert(alert_line(severity, RECORDER, text))
