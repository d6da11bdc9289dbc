"""The sender: plays a plan over a transport, and says what happened, once a tick."""

from __future__ import annotations

import math
from collections.abc import Callable

from servetop.core.clock import MonotonicClock
from servetop.core.events import Action, Command, RequestStatus
from servetop.core.interfaces.dialect import Dialect
from servetop.core.tick import LoadGauges
from servetop.loadgen.messages import SenderReport, SenderSetup, TimedCommand
from servetop.loadgen.request.prerender import PrerenderQueue
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.sender.backoff import Backoff
from servetop.loadgen.sender.conversations import Conversations
from servetop.loadgen.sender.heartbeat import Heartbeat
from servetop.loadgen.sender.in_flight import InFlightRequests
from servetop.loadgen.sender.live_commands import burst, steer
from servetop.loadgen.sender.pacing import deadline_timer
from servetop.loadgen.sender.partition import Partition
from servetop.loadgen.sender.preparation import Preparation, prompts_of
from servetop.loadgen.sender.random_cancellation import RandomCancellation
from servetop.loadgen.sender.report_builder import ReportBuilder
from servetop.loadgen.transport.raw_transport import ClientFactory
from servetop.workload.build import arrivals_of
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.plan import LoadPhase, LoadPlan
from servetop.workload.schedule import Schedule
from servetop.workload.stage_run import Due
from servetop.workload.user_slots import UserSlots

_PLACES_AT_A_STRETCH = 16
"""Filled before the event loop has its turn: a heartbeat that waits for hundreds would tell of a busy client."""


class Sender:
    """Lives on one running event loop, from its making to `close`; a report goes out at the end of every tick."""

    def __init__(
        self,
        setup: SenderSetup,
        dialect: Dialect,
        *,
        clock: MonotonicClock,
        transport: ClientFactory,
        report: Callable[[SenderReport], None],
    ) -> None:
        workload = setup.workload
        self._setup = setup
        self._clock = clock
        self._report = report
        self._arrivals = arrivals_of(workload, seed=setup.seed)
        self._tally = SkippedRows()
        self._share = Partition(setup)
        outbox = PrerenderQueue(self._share.dealt(prompts_of(setup, self._tally)), dialect, workload, tally=self._tally)
        self._ready = Preparation(outbox, self._share, dialect)
        self._transport = transport(self)
        self._crowd = InFlightRequests(workload.timeout)
        self._quitters = RandomCancellation(workload.cancel_fraction, seed=setup.seed)
        self._backoff = Backoff()
        self._draft = ReportBuilder(worker=setup.worker)
        self._schedule: Schedule | None = None
        self._stage = -1
        self._limit: int | None = None
        own_seed = self._share.own_seed(setup.seed)
        self._talks = Conversations.of(setup, self._tally, seed=own_seed)
        self._places = UserSlots.of(workload, seed=own_seed)
        self.horizon = math.inf
        """Run time that the schedule must not pass yet: an order is waiting for it."""
        self._stopped = False
        self._wake_at = math.inf
        self._due_timer = deadline_timer(clock, self._play)
        self._metronome = Heartbeat(clock, beat=self._beat, tick=self._send_report)

    def begin(self, plan: LoadPlan) -> None:
        """Play a plan from now on instead of the one before, whose requests in flight go on."""
        self._stopped = False
        self._collect_changes()
        self._share.count_from(plan.first_number)
        self._schedule = Schedule(plan, arrivals=self._arrivals, now=self._share.starting(self._clock.now()))
        self._prepare()
        self._play()

    def obey(self, command: Command, order: TimedCommand | None = None) -> None:
        """Act on a command at once, or as of the time of an order; the next report carries the reply."""
        at = self._clock.now() if order is None else order.at
        reply = self._act(command, at)
        self._limit_in_force(order)
        self._draft.reply(command, reply, at=at)
        self._places.opened()
        self._play()

    def reach(self, order: TimedCommand) -> None:
        """The time of an order has come: play up to it, and no further until it has been obeyed."""
        self.horizon = order.at
        self._play()
        self._share.reform(order)

    def _act(self, command: Command, at: float) -> str:
        schedule = self._schedule
        if command.action in (Action.STOP, Action.CANCEL):
            return self._stop(at, cancel=command.action is Action.CANCEL)
        if schedule is None:
            return "no load is being played yet"
        if command.action is Action.BURST:
            dues, words = burst(schedule.play, command.value, at)
            for due in dues:
                self._arrived(due)
            return words
        reply = steer(schedule, command, at)
        return f"the load generator cannot do {command.action}" if reply is None else reply

    def _stop(self, at: float, *, cancel: bool) -> str:
        self._stopped = True
        if self._schedule is not None:
            self._schedule.stop(at)
        held = len(self._crowd.waiting)
        self._drop_waiting(at, "stopped before it was sent")
        if cancel:
            return f"{self._cancel_in_flight('cancelled') + held} requests cancelled"
        return f"sending nothing more, waiting for {self._crowd.in_flight} requests in flight"

    def _play(self) -> None:
        """Send what is due, fill free places, see whether a drain is over, and set the timer for what comes next."""
        schedule = self._schedule
        if schedule is None:
            return
        now = min(self._clock.now(), self.horizon)
        for due in schedule.due(now):
            self._arrived(due)
        for due in self._talks.due(now, schedule):
            self._share.claim(due)
            self._admit(due)
        more = self._use_free_places(schedule, now)
        if schedule.draining_since is not None and self._crowd.empty and not self._talks.thinking:
            schedule.drained(now)
            for remark in self._tally.remarks() if schedule.finished else ():
                self._draft.warn(remark, now)
        place_at = self._places.usable_at(now, not_before=self._backoff.until) if self._closed else math.inf
        self._wake_at = now if more else min(schedule.wake_at(), place_at, self._talks.wake_at)
        self._due_timer.arm(self._wake_at)

    @property
    def _closed(self) -> bool:
        return self._schedule is not None and self._schedule.play is not None and self._schedule.play.closed

    def _arrived(self, due: Due) -> None:
        self._limit_in_force()  # which decides who is at work
        if self._share.takes(due):
            self._admit(due)

    def _admit(self, due: Due) -> None:
        limit = self._limit_in_force()
        self._draft.accounts.due += 1
        if self._crowd.waiting or self._paused or not self._crowd.has_room(limit):
            self._crowd.waiting.append(due)
        else:
            self._send(due, held_back=False)

    def _use_free_places(self, schedule: Schedule, now: float) -> bool:
        """Whether more of them may be free."""
        if self._paused:
            return False
        limit = self._limit_in_force()
        while self._crowd.waiting and self._crowd.has_room(limit):
            self._send(self._crowd.waiting.popleft(), held_back=True)
        for _ in range(_PLACES_AT_A_STRETCH):
            if now < self._backoff.until:
                return False
            since = self._places.free_since(now, in_flight=self._crowd.in_flight + self._talks.thinking, limit=limit)
            due = None if since is None else schedule.slot(max(since, self._backoff.until))
            if due is None:
                return False
            self._draft.accounts.due += 1
            self._share.claim(due)
            self._send(due, held_back=False)
            now = min(self._clock.now(), self.horizon)
        return True

    def _limit_in_force(self, order: TimedCommand | None = None) -> int | None:
        """Our part of the stage's limit, and after a stage of its last one: what it held back is still held back."""
        if self._schedule is not None and self._schedule.latest is not None:
            self._limit = self._schedule.latest.limit
        return self._share.places(self._limit, number_from=order.number_from if order else None)

    @property
    def _paused(self) -> bool:
        return self._schedule is not None and self._schedule.play is not None and self._schedule.play.paused

    def _send(self, due: Due, *, held_back: bool) -> None:
        exchange = self._ready.exchange(due, held_back=held_back)
        self._crowd.add(exchange, self._clock.now())
        self._quitters.consider(exchange)
        self._transport.submit(exchange)

    # --- what the transport reports ---

    def sent(self, exchange: RequestState) -> None:
        """See ExchangeListener."""
        self._draft.accounts.went_out(exchange)

    def progressed(self, exchange: RequestState) -> None:
        """See ExchangeListener."""
        self._draft.accounts.progressed(exchange)

    def send_overdue(self) -> None:
        """See ExchangeListener. What fell due during work that takes long goes out before the next piece of it."""
        if self._clock.now() >= self._wake_at:
            self._play()

    def ended(self, exchange: RequestState) -> None:
        """See ExchangeListener."""
        goes_on = self._book(exchange)
        if exchange.done_at is not None and not goes_on:
            self._places.freed(exchange.done_at, closed=self._closed)
        if self._backoff.outcome(exchange, self._clock.now()):
            self._draft.warn(f"{exchange.error}; a closed loop tries again every second", self._clock.now())
        self._play()

    def _book(self, exchange: RequestState) -> bool:
        self._crowd.remove(exchange)
        self._draft.book(exchange)
        return self._talks.ended(exchange)

    def _give_up(self, exchange: RequestState, status: RequestStatus, *, reason: str) -> None:
        exchange.give_up(status, self._clock.now(), reason=reason)
        self._transport.withdraw(exchange)
        self._book(exchange)

    def _cancel_in_flight(self, reason: str) -> int:
        exchanges = self._crowd.all_in_flight()
        for exchange in exchanges:
            self._give_up(exchange, RequestStatus.CANCELLED, reason=reason)
        return len(exchanges)

    def _drop_waiting(self, at: float, reason: str) -> None:
        while self._crowd.waiting:
            exchange = self._ready.exchange(self._crowd.waiting.popleft(), held_back=True)
            exchange.give_up(RequestStatus.CANCELLED, at, reason=reason)
            self._book(exchange)

    # --- time passes ---

    def _beat(self, late: float) -> None:
        """Every 20 ms: note the loop's lag, give up what takes too long, prepare what comes next."""
        now = self._clock.now()
        self._draft.accounts.beat(late)
        overdue = list(self._crowd.overdue(now))
        for exchange in overdue:
            words = f"no complete answer within {self._setup.workload.timeout:g} s"
            self._give_up(exchange, RequestStatus.TIMEOUT, reason=words)
        quitters = self._quitters.out_of_patience()
        for exchange in quitters:
            self._give_up(exchange, RequestStatus.CANCELLED, reason="broken off by the client, as asked")
        schedule = self._schedule
        drain_over = schedule is not None and now >= schedule.drain_deadline
        if drain_over:
            self._talks.cut_short()
            self._drop_waiting(now, "not sent before the drain timeout")
            count = self._cancel_in_flight("not finished within the drain timeout")
            self._draft.warn(f"drain timeout: {count} requests in flight were cancelled", now)
        if overdue or quitters or drain_over:
            self._play()
        self._prepare()

    def _prepare(self) -> None:
        self._ready.requests(self._clock, between=self.send_overdue)
        self._ready.connections(self._transport, schedule=self._schedule, in_flight=self._crowd.in_flight)

    def _send_report(self, tick: int) -> None:
        self._transport.catch_up()
        self._collect_changes()
        report = self._share.signed(self._draft.finish(tick, state=self.state, gauges=self._gauges()))
        self.send_overdue()
        self._report(report)

    def _collect_changes(self) -> None:
        if self._schedule is not None and self._schedule.changes:
            self._stage = self._schedule.changes[-1].index
            self._draft.take_stages(self._schedule.changes)

    def _gauges(self) -> LoadGauges:
        counts = self._crowd.gauges(stage=self._stage, max_concurrency=self._limit_in_force())
        return counts if self._schedule is None else self._schedule.gauges(counts, at=self._clock.now())

    @property
    def state(self) -> LoadPhase:
        """As of now."""
        if self._schedule is None:
            return LoadPhase.FINISHED if self._stopped else LoadPhase.IDLE
        return self._schedule.state

    async def close(self) -> None:
        """Send nothing more, report nothing more, close every connection."""
        self._due_timer.close()
        self._metronome.close()
        await self._transport.close()
