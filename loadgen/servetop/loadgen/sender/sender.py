"""The sender: sends the requests of a load plan when they are due and reports once per tick.

Requests are sent at absolute due times that do not depend on responses, which avoids coordinated omission: a request
that the sender or the concurrency limit delays keeps its due time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from servetop.core.clock import MonotonicClock
from servetop.core.events import Action, Command, RequestStatus
from servetop.core.interfaces.dialect import Dialect, Prompt
from servetop.core.interfaces.request_in_flight import MOST_IN_FLIGHT, TICKS_BETWEEN
from servetop.core.text.counted import counted, was_were
from servetop.core.tick import LoadGauges
from servetop.loadgen.messages import SenderReport, SenderSetup, TimedCommand
from servetop.loadgen.pacing import deadline_timer
from servetop.loadgen.request.prerender import NumberedRequest, prerender_queue
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.sender.cancellation import Cancellation
from servetop.loadgen.sender.conversations import Conversations
from servetop.loadgen.sender.heartbeat import Heartbeat
from servetop.loadgen.sender.in_flight import InFlightRequests
from servetop.loadgen.sender.live_commands import apply_command, burst, stop_reply
from servetop.loadgen.sender.partition import partition_for
from servetop.loadgen.sender.report_builder import ReportBuilder
from servetop.loadgen.sender.sender_priority import SenderPriority
from servetop.loadgen.transport.transport import TransportFactory
from servetop.workload.build import arrivals_of
from servetop.workload.client.load_client import LoadClient
from servetop.workload.datasets.shared_dataset import SharedDataset
from servetop.workload.stages.plan import LoadPhase, LoadPlan
from servetop.workload.stages.schedule import Schedule
from servetop.workload.stages.stage_run import Due

_SLOTS_AT_ONCE = 16
"""User slots filled before the event loop continues; filling hundreds would delay the heartbeat."""


class Sender:
    """Runs on one event loop from its creation to `close`; listens to its transport."""

    def __init__(
        self,
        setup: SenderSetup,
        dialect: Dialect,
        *,
        clock: MonotonicClock,
        transport: TransportFactory,
        report: Callable[[SenderReport], None],
        priority: SenderPriority | None = None,
    ) -> None:
        self._clock, self._report = clock, report
        self._partition = partition_for(setup)
        self._reports = ReportBuilder(worker=setup.worker, goodput=setup.goodput, priority=priority)
        self.request_sent: Callable[[RequestState], None] = self._reports.tick.add_sent
        self.chunks_received: Callable[[RequestState], None] = self._reports.tick.add_chunks
        self._transport = transport(self)
        self._in_flight = InFlightRequests()
        self._schedule: Schedule | None = None
        self._stage, self._stopped = -1, False
        self._stage_limit: int | None = None
        first = None if setup.draws is None else setup.draws.workload
        self.use(setup if first is None else dataclasses.replace(setup, workload=first), dialect)
        self.barrier = math.inf
        """Run time that the schedule must not pass yet, because a timed command takes effect then."""
        self._wake_at = math.inf
        self._due_timer = deadline_timer(clock, self._send_due)
        self._heartbeat = Heartbeat(clock, on_beat=self._beat, on_tick=self._send_report)

    def use(self, setup: SenderSetup, dialect: Dialect) -> None:
        """Send the requests of a workload from now on; those in flight continue."""
        self._setup, self._dialect = setup, dialect
        dataset = SharedDataset(setup.workload)
        self._skipped = dataset.skipped
        self._arrivals = arrivals_of(setup.workload, dataset)
        self._prerender = prerender_queue(setup, self._dialect, own=self._partition.prompts, dataset=dataset)
        self._cancellation = Cancellation(
            setup.workload, clock=self._clock, transport=self._transport, finish=self._finish
        )
        self._client: LoadClient[Prompt] = LoadClient(setup.workload, skipped=self._skipped, worker=setup.worker)
        self._conversations = Conversations.of(setup, self._skipped, turns=self._client.turns)

    def begin(self, plan: LoadPlan) -> None:
        """Start a plan in place of the previous one, whose requests in flight continue.

        All stages of a plan have one workload: with another one than before, it follows after a drain.
        """
        workload = plan.draws_of(plan.segments[0][0]).workload
        if workload is not None and workload != self._setup.workload:
            self._cancel_queued(self._clock.now(), "the next cell sends other requests")
            self.use(dataclasses.replace(self._setup, workload=workload, draws=None), self._dialect)
        self._stopped = False
        self._reports.begin()
        self._collect_stage_changes()
        self._partition.count_from(plan.first_number)
        self._prerender.begin(plan)
        start = self._partition.earliest_start(self._clock.now())
        self._schedule = self._client.begin(plan, arrivals=self._arrivals, now=start)
        self._prepare()
        self._send_due()

    # --- commands ---

    def apply(self, command: Command) -> None:
        """Apply a command now; the next report carries the reply."""
        self._apply(command, self._clock.now())

    def apply_timed(self, timed: TimedCommand) -> None:
        """Advance the schedule to a command's time, and apply it as of that time."""
        self.barrier = timed.at
        self._send_due()
        self._partition.apply(timed)
        if timed.command is not None:
            self._apply(timed.command, timed.at, number_from=timed.number_from)

    def _apply(self, command: Command, at: float, *, number_from: int | None = None) -> None:
        reply, count = self._reply_to(command, at)
        self._limit(number_from=number_from)
        self._reports.reply(command, reply, count=count, at=at)
        self._client.slots.opened()
        self._send_due()

    def _reply_to(self, command: Command, at: float) -> tuple[str, int | None]:
        """Apply a command; return the reply, and how many requests a stop or a cancellation counts."""
        if command.action in (Action.STOP, Action.CANCEL):
            count = self._stop(at, cancel=command.action is Action.CANCEL)
            return stop_reply(command.action, count), count
        if (schedule := self._schedule) is None:
            return "no load has been started yet", None
        if command.action is Action.BURST:
            requests, reply = burst(schedule.stage, command.value, at)
            for due in requests:
                self._select(due)
            return reply, None
        return apply_command(schedule, command, at) or f"the load generator does not support {command.action}", None

    def _stop(self, at: float, *, cancel: bool) -> int:
        self._stopped = True
        if self._schedule is not None:
            self._schedule.stop(at)
        queued = len(self._in_flight.queued)
        self._cancel_queued(at, "stopped before it was sent")
        if cancel:
            return queued + self._cancellation.cancel_in_flight(self._in_flight, "cancelled")
        return self._in_flight.count

    # --- sending ---

    def _send_due(self) -> None:
        """Send what is due, fill free user slots, end a finished drain, and set the timer for what comes next."""
        schedule = self._schedule
        if schedule is None:
            return
        now, client = min(self._clock.now(), self.barrier), self._client
        for due in schedule.due(now):
            self._select(due)
        client.follow_pauses()
        for turn in client.turns.due(now, schedule):
            self._admit(self._partition.claim(Due(turn.stage, turn.at, turn.prompt)))
        more = self._fill_slots(now)
        if client.drained(now, unfinished=not self._in_flight.empty):
            for remark in self._skipped.remarks() if schedule.finished else ():
                self._reports.remark(remark, now)
        self._wake_at = now if more else client.wake_at(now)
        self._due_timer.arm(self._wake_at)

    def _select(self, due: Due) -> None:
        self._limit()  # a new limit may change which senders work
        if (request := self._partition.select(due)) is not None:
            self._admit(request)

    def _admit(self, request: NumberedRequest) -> None:
        """Send a request, or queue it if the concurrency limit is reached or the load is paused."""
        waiting, limit = self._in_flight, self._limit()
        self._reports.tick.due += 1
        if not waiting.queued and self._client.has_room(in_flight=waiting.count, limit=limit):
            self._send(request, limited=False)
        else:
            waiting.queued.append(request)

    def _fill_slots(self, now: float) -> bool:
        """Send queued requests, then those of free user slots; return whether more slots may be free."""
        client, waiting, limit = self._client, self._in_flight, self._limit()
        while waiting.queued and client.has_room(in_flight=waiting.count, limit=limit):
            self._send(waiting.queued.popleft(), limited=True)
        for _ in range(_SLOTS_AT_ONCE):
            due = client.take_slot(now, in_flight=waiting.count, limit=limit)
            if due is None:
                return False
            self._reports.tick.due += 1
            self._send(self._partition.claim(due), limited=False)
            now = min(self._clock.now(), self.barrier)
        return True

    def _send(self, numbered: NumberedRequest, *, limited: bool) -> None:
        request = self._prerender.take(numbered, limited=limited)
        self._in_flight.add(request, self._clock.now())
        self._cancellation.consider(request)
        self._transport.submit(request)

    def _limit(self, *, number_from: int | None = None) -> int | None:
        """Return this sender's part of the concurrency limit; after a stage, its last limit stays in force."""
        if self._schedule is not None and self._schedule.latest_stage is not None:
            self._stage_limit = self._schedule.latest_stage.limit
        return self._partition.limit_for(self._stage_limit, number_from=number_from)

    # --- events of the transport (RequestListener) ---

    def send_overdue(self) -> None:
        """Send what became due during long work, before the next piece of it."""
        if self._clock.now() >= self._wake_at:
            self._send_due()

    def response_complete(self, request: RequestState, at: float) -> None:
        """Free the user slot of a request whose turn is its last, and send what that makes room for."""
        if not self._conversations.may_continue(request) and self._in_flight.remove(request):
            self._client.freed(at)
            self._send_due()

    def request_ended(self, request: RequestState) -> None:
        """Record the request, free its user slot unless it is free already, and send what that makes room for."""
        holds_slot = self._in_flight.remove(request)
        continues = self._finish(request)
        if holds_slot and request.done_at is not None and not continues:
            self._client.freed(request.done_at)
        now = self._clock.now()
        failed = request.status is RequestStatus.ERROR and request.first_token_at is None
        if self._client.ended(now, failed=failed):
            self._reports.warn(f"{request.error}{'; a closed loop retries every second' * self._client.closed}", now)
        self._send_due()

    def _finish(self, request: RequestState) -> bool:
        """Record a request that has ended; return whether its conversation continues."""
        self._in_flight.remove(request)
        self._reports.add_ended(request)
        return self._conversations.request_ended(request)

    # --- timers ---

    def _beat(self, late: float) -> None:
        """Every 20 ms: count the loop's lag, enforce timeouts, render ahead."""
        now = self._clock.now()
        self._reports.tick.add_lag(late)
        expired = self._cancellation.expire(self._in_flight)
        drain_over = self._schedule is not None and now >= self._schedule.drain_deadline
        if drain_over:
            self._client.turns.cancel()
            self._cancel_queued(now, "not sent before the drain timeout")
            count = self._cancellation.cancel_in_flight(self._in_flight, "not finished within the drain timeout")
            self._reports.warn(f"drain timeout: {counted(count, 'request')} in flight {was_were(count)} cancelled", now)
        if expired or drain_over:
            self._send_due()
        self._prepare()

    def _cancel_queued(self, at: float, reason: str) -> None:
        self._cancellation.cancel_queued(self._in_flight, self._prerender, at, reason=reason)

    def _prepare(self) -> None:
        """Render requests and open connections ahead of demand."""
        stage, part = None if self._schedule is None else self._schedule.prompts_for, self._partition
        self._prerender.fill(self._clock, stage=stage, wanted=lambda: part.working, between=self.send_overdue)
        self._partition.skip_prompts()
        if self._schedule is not None:
            wanted = self._schedule.connections_wanted(self._in_flight.count)
            self._transport.keep_ready(self._partition.connections(wanted))

    def _send_report(self, tick: int) -> None:
        self._transport.catch_up()
        self._collect_stage_changes()
        in_flight = None if tick % TICKS_BETWEEN else self._in_flight.newest(MOST_IN_FLIGHT, self._clock.now())
        built = self._reports.build(tick, state=self.state, gauges=self._gauges(), in_flight=in_flight)
        report = self._partition.finish_report(built)
        self.send_overdue()
        self._report(report)

    def _collect_stage_changes(self) -> None:
        if self._schedule is not None and self._schedule.latest_stage is not None:
            self._stage = self._schedule.latest_stage.index
            self._reports.take_stages(self._schedule, self._clock.now())

    def _gauges(self) -> LoadGauges:
        gauges = self._in_flight.gauges(stage=self._stage, max_concurrency=self._limit())
        return gauges if self._schedule is None else self._schedule.gauges(gauges, at=self._clock.now())

    @property
    def state(self) -> LoadPhase:
        """The current phase of the load."""
        if self._schedule is None:
            return LoadPhase.FINISHED if self._stopped else LoadPhase.IDLE
        return self._schedule.state

    async def close(self) -> None:
        """Stop the timers and close every connection; nothing more is reported."""
        self._due_timer.close()
        self._heartbeat.close()
        await self._transport.close()
