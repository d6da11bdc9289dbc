"""The virtual-time driver: from decision to decision, as fast as the machine goes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence as Items
from typing import Protocol

from servetop.simulator.predict.usage_integrals import UsageIntegrals
from servetop.simulator.scheduling.scheduler import Scheduler
from servetop.simulator.scheduling.sim_request import SimRequest, SimSequence
from servetop.simulator.scheduling.work import Work, grid_after


class Arrivals(Protocol):
    """A client model: pure, told nothing but where the engine's iteration boundaries are."""

    def due(self) -> float:
        """When the next requests come; infinity when none do."""
        ...

    def land(self, boundary: float, /) -> tuple[float, Items[SimRequest]]:
        """Hand over what is due, at the engine's first boundary after that: arrival time and requests."""
        ...


class VirtualEngine:
    """One scheduler on a virtual clock. `stride` caps how many decode steps are made at once (1: one by one)."""

    def __init__(self, scheduler: Scheduler, *, stride: int | None = None) -> None:
        self.scheduler = scheduler
        self.ledger = UsageIntegrals()
        self.now = 0.0
        self._stride = stride
        self._index = itertools.count()

    def offer(self, at: float, requests: Items[SimRequest]) -> None:
        """Queue requests that arrive at `at`; what an empty engine could never serve is refused."""
        if at < self.now:
            self.ledger.waited(len(requests), self.now - at)
        self.now = max(self.now, grid_after(at))
        for request in requests:
            seq = SimSequence(request, index=next(self._index), arrival=at)
            if self.scheduler.accepts(seq):
                self.scheduler.add(seq)
                self.ledger.accepted(seq)
            else:
                self.ledger.refused += 1

    def run(self, arrivals: Arrivals) -> UsageIntegrals:
        """Serve everything that the client sends, to the last token."""
        scheduler = self.scheduler
        while True:
            while (due := arrivals.due()) <= self.now:
                self.offer(*arrivals.land(self.now))
            work = scheduler.plan(self.now)
            if work is None:
                wake = min(due, scheduler.opens_at())
                if wake == math.inf:
                    return self.ledger
                self._idle(wake)
                continue
            self._perform(work, arrivals)

    def advance(self, until: float) -> None:
        """Go on to the first iteration boundary at or after `until`, or as far as there is work."""
        while self.now < until:
            work = self.scheduler.plan(self.now)
            if work is None:
                wake = self.scheduler.opens_at()
                if wake >= until:
                    return
                self._idle(wake)
                continue
            steps = min(work.steps, self._stride or work.steps)
            self._commit(work, steps if math.isinf(until) else min(steps, work.steps_by(until - self.now)))

    def _idle(self, until: float) -> None:
        if until > self.now:
            self.ledger.waited(self.scheduler.unfinished, until - self.now)
            self.now = grid_after(until)

    def _perform(self, work: Work, arrivals: Arrivals) -> None:
        """Let the work go on until a decision is due, landing requests that come meanwhile."""
        start, steps = self.now, min(work.steps, self._stride or work.steps)
        due = arrivals.due()
        if work.admits and due < start + work.elapsed(steps):
            steps = min(steps, work.steps_by(due - start))
        self._commit(work, steps)
        while (due := arrivals.due()) < self.now:
            boundary = start + work.elapsed(work.steps_by(due - start))
            self.offer(*arrivals.land(boundary))

    def _commit(self, work: Work, steps: int) -> None:
        start, end = self.now, self.now + work.elapsed(steps)
        self.ledger.preempted(self.scheduler.victims)
        self.ledger.waited(self.scheduler.unfinished, end - start)
        finished = self.scheduler.complete(work, steps, now=end)
        self.ledger.performed(work, steps, start=start, returned=self.scheduler.returned)
        self.ledger.completed(finished, end)
        self.now = end
