"""Collects what goes into a sender's next report."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping

from servetop.core.clock import cpu_seconds
from servetop.core.events import Command, Note, RequestRecord, RequestStatus, Severity, StageChange
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.text.counted import counted
from servetop.core.tick import TICK_SECONDS, LoadGauges
from servetop.loadgen.messages import SenderReport
from servetop.loadgen.request.record import build_record
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.sender.sender_priority import SenderPriority
from servetop.loadgen.sender.tick_builder import TickBuilder
from servetop.workload.datasets.rows import Remark
from servetop.workload.stages.plan import LoadPhase
from servetop.workload.stages.schedule import Schedule


class ReportBuilder:
    """Collects records, stage changes, notes, replies and the tick's counts until `build`."""

    def __init__(
        self, *, worker: int, goodput: Mapping[str, float] | None = None, priority: SenderPriority | None = None
    ) -> None:
        """Count the requests that meet all limits of `goodput` (seconds by metric), if there are any."""
        self.tick = TickBuilder(goodput)
        self._worker = worker
        self._priority = priority
        self._loop = asyncio.get_running_loop()
        self._ended: list[RequestState] = []
        """Requests that have ended and are not recorded yet."""
        self._records: list[RequestRecord] = []
        self._stages: list[StageChange] = []
        self._notes: list[Note] = []
        self._replies: list[Command] = []
        self._reply_counts: dict[int, int] = {}
        self._warned_of_choices = False
        self._cpu_before = cpu_seconds()

    def begin(self) -> None:
        """Raise the sender's priority, because its load begins."""
        if self._priority is not None:
            self._priority.begin()

    def add_ended(self, request: RequestState) -> None:
        """Take over a request that has ended; it is recorded once what its end makes room for has been sent.

        An engine ends the requests of a batch together: a record takes as long as sending the next request.
        """
        if not self._ended:
            self._loop.call_soon(self._record_ended)
        self._ended.append(request)

    def _record_ended(self) -> None:
        """Add the records of the requests that have ended, and count them in the tick."""
        ended, self._ended = self._ended, []
        for request in ended:
            self.tick.add_chunks(request)  # a response in one piece has its tokens only now
            record = build_record(request, worker=self._worker)
            self.tick.add_ended(request, record)
            self._records.append(record)
            if record.status is RequestStatus.OK and not self._warned_of_choices:
                self._warn_of_choices(request)

    def _warn_of_choices(self, request: RequestState) -> None:
        """Warn once of a server that sends fewer completions of a prompt than requested."""
        wanted, sent = request.choices, request.choices - request.open_choices
        if 0 < sent < wanted:
            self._warned_of_choices = True
            each = (
                f"the server sends {counted(sent, 'completion')} of each prompt, {wanted} were requested (n = {wanted})"
            )
            self.warn(f"{each}: tokens and rates are those of what it sends", request.done_at or 0.0)

    def take_stages(self, schedule: Schedule, at: float) -> None:
        """Move the stage changes and warnings of a schedule into the report."""
        self._stages += schedule.changes
        schedule.changes.clear()
        for text in schedule.warnings:
            self.warn(text, at)
        schedule.warnings.clear()

    def warn(self, text: str, at: float) -> None:
        """Add a warning for the timeline."""
        self._notes.append(Note(at=at, severity=Severity.WARNING, source="load", text=text))

    def remark(self, remark: Remark, at: float) -> None:
        """Add a warning about the dataset, with what it counts."""
        self.warn(remark.text, at)
        self._notes[-1] = dataclasses.replace(
            self._notes[-1], fact=remark.fact, subject=remark.subject, count=remark.count
        )

    def reply(self, command: Command, text: str, *, count: int | None, at: float) -> None:
        """Add the reply to a command that was applied at run time `at`, with the requests that it counts, if any."""
        self._replies.append(dataclasses.replace(command, applied_at=at, reply=text))
        if count is not None:
            self._reply_counts[command.id] = count

    def build(
        self,
        index: int,
        *,
        state: LoadPhase,
        gauges: LoadGauges,
        in_flight: tuple[RequestInFlight, ...] | None = None,
    ) -> SenderReport:
        """Return the report of tick `index` and start the next one."""
        self._record_ended()
        cpu_before, self._cpu_before = self._cpu_before, cpu_seconds()
        used = self._cpu_before - cpu_before
        if self._priority is not None:
            if reason := self._priority.update(used):
                self.warn(reason, (index + 1) * TICK_SECONDS)
            gauges = dataclasses.replace(gauges, sender_class=self._priority.sender_class)
        report = SenderReport(
            state=state,
            tick=self.tick.build(index, gauges=gauges, cpu_seconds=used),
            records=tuple(self._records),
            in_flight=in_flight,
            stages=tuple(self._stages),
            notes=tuple(self._notes),
            replies=tuple(self._replies),
            reply_counts=dict(self._reply_counts),
        )
        for reported in (self._records, self._stages, self._notes, self._replies, self._reply_counts):
            reported.clear()
        return report
