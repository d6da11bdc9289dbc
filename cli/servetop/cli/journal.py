"""What the run itself has to say, kept until the next tick takes it to the recording."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from servetop.cli.engine_side import EngineSide
from servetop.core.clock import Clock
from servetop.core.events import Command, Note, RequestRecord, Severity, StageChange
from servetop.core.tick import ClientTick, Tick
from servetop.recordings.batch import Batch
from servetop.recordings.recorder import Recorder


class Journal:
    """Joins the senders' side, the engine's side and the run's own notes into one batch a tick."""

    def __init__(self, recorder: Recorder, engine: EngineSide, *, clock: Clock) -> None:
        self._recorder = recorder
        self._engine = engine
        self._clock = clock
        self._notes: list[Note] = []
        self._replies: list[Command] = []
        self._recorder_trouble: str | None = None

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
        self._note_recorder_trouble()
        news = self._engine.news()
        batch = Batch(
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

    def _note_recorder_trouble(self) -> None:
        trouble = self._recorder.trouble
        if trouble != self._recorder_trouble:
            words = trouble or "the recording can be written again"
            self.note(Severity.ERROR if trouble else Severity.INFO, "recorder", text=words)
        self._recorder_trouble = trouble
