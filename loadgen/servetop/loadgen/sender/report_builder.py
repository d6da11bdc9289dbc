"""What goes into a sender's next report, as it comes up."""

from __future__ import annotations

import dataclasses

from servetop.core.clock import cpu_seconds
from servetop.core.events import Command, Note, RequestRecord, Severity, StageChange
from servetop.core.tick import LoadGauges
from servetop.loadgen.messages import SenderReport
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.sender.tick_builder import TickBuilder
from servetop.workload.plan import LoadPhase


class ReportBuilder:
    """Collects records, stage changes, notes, replies and the tick's accounts until `finish`."""

    def __init__(self, *, worker: int) -> None:
        self.accounts = TickBuilder()
        self._worker = worker
        self._records: list[RequestRecord] = []
        self._stages: list[StageChange] = []
        self._notes: list[Note] = []
        self._replies: list[Command] = []
        self._cpu_before = cpu_seconds()

    def book(self, exchange: RequestState) -> None:
        """An exchange has ended: its record and its place in the accounts."""
        self.accounts.progressed(exchange)  # an answer in one piece brings its tokens with its end
        record = exchange.record(worker=self._worker)
        self.accounts.ended(exchange, record)
        self._records.append(record)

    def take_stages(self, changes: list[StageChange]) -> None:
        """Move stage changes over from a schedule's list."""
        self._stages += changes
        changes.clear()

    def warn(self, text: str, at: float) -> None:
        """A note for the time line."""
        self._notes.append(Note(at=at, severity=Severity.WARNING, source="load", text=text))

    def reply(self, command: Command, text: str, *, at: float) -> None:
        """What became of a command."""
        self._replies.append(dataclasses.replace(command, obeyed_at=at, reply=text))

    def finish(self, index: int, *, state: LoadPhase, gauges: LoadGauges) -> SenderReport:
        """The report of tick `index`; the draft starts anew."""
        cpu_before, self._cpu_before = self._cpu_before, cpu_seconds()
        report = SenderReport(
            state=state,
            tick=self.accounts.close(index, gauges=gauges, cpu_seconds=self._cpu_before - cpu_before),
            records=tuple(self._records),
            stages=tuple(self._stages),
            notes=tuple(self._notes),
            replies=tuple(self._replies),
        )
        for reported in (self._records, self._stages, self._notes, self._replies):
            reported.clear()
        return report
