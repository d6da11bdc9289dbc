"""The virtual-time driver: advances a scheduler from decision to decision without waiting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence as Items
from typing import Protocol

from servetop.simulator.predict.usage_integrals import UsageIntegrals
from servetop.simulator.scheduling.scheduler import Scheduler
from servetop.simulator.scheduling.sim_request import SimRequest, SimSequence
from servetop.simulator.scheduling.work import Work, grid_after


class Client(Protocol):
    """Sends requests to simulated engines. It observes iteration boundaries and completions, not a clock."""

    feedback: bool
    """Whether send times depend on completions."""

    def due(self) -> float:
        """Time of the next request; infinity when there is none, or none before a completion."""
        ...

    def land(self, boundary: float, /) -> tuple[float, Items[SimRequest]]:
        """Take the requests that are due, at the engine's first boundary after that: arrival time and requests."""
        ...

    def ended(self, finished: Items[SimSequence], now: float) -> None:
        """Called with the requests that have completed at `now`."""
        ...

    def refused(self, request: SimRequest, at: float) -> None:
        """Called with a request that the engine could never serve."""
        ...


class VirtualEngine:
    """One scheduler on a virtual clock; `stride` limits the decode steps of one advance (1: step by step)."""

    def __init__(self, scheduler: Scheduler, *, stride: int | None = None) -> None:
        self.scheduler = scheduler
        self.usage = UsageIntegrals()
        self.now = 0.0
        self._stride = stride
        self._index = itertools.count()

    def offer(self, at: float, requests: Items[SimRequest], client: Client) -> None:
        """Queue requests that arrive at `at`; refuse those that the engine could never serve."""
        if at < self.now:
            self.usage.waited(len(requests), self.now - at)
        self.now = max(self.now, grid_after(at))
        for request in requests:
            seq = SimSequence(request, index=next(self._index), arrival=at)
            if self.scheduler.accepts(seq):
                self.scheduler.add(seq)
                self.usage.accepted(seq)
            else:
                self.usage.refused += 1
                client.refused(request, at)

    def run(self, client: Client) -> UsageIntegrals:
        """Serve all requests of the client, to the last token."""
        scheduler = self.scheduler
        while True:
            while (due := client.due()) <= self.now:
                self.offer(*client.land(self.now), client)
            work = scheduler.plan(self.now)
            if work is None:
                wake = min(due, scheduler.opens_at())
                if wake == math.inf:
                    return self.usage
                self._idle(wake)
                continue
            self._run_work(work, client)

    def advance(self, until: float, client: Client) -> None:
        """Run to the first iteration boundary at or after `until`, or as far as there is work."""
        while self.now < until:
            work = self.scheduler.plan(self.now)
            if work is None:
                wake = self.scheduler.opens_at()
                if wake >= until:
                    return
                self._idle(wake)
                continue
            steps = min(work.steps, self._stride or work.steps)
            self._commit(work, steps if math.isinf(until) else min(steps, work.steps_by(until - self.now)), client)

    def step(self, until: float, client: Client) -> None:
        """Run one iteration, or wait until the scheduler admits one, `until` at the latest."""
        work = self.scheduler.plan(self.now)
        if work is None:
            self._idle(min(self.scheduler.opens_at(), until))
        else:
            self._commit(work, 1, client)

    def _idle(self, until: float) -> None:
        if until > self.now:
            self.usage.waited(self.scheduler.unfinished, until - self.now)
            self.now = grid_after(until)

    def _run_work(self, work: Work, client: Client) -> None:
        """Run the work up to the next decision, and queue the requests that arrive meanwhile."""
        start, steps = self.now, min(work.steps, self._stride or work.steps)
        due = client.due()
        if work.admits and due < start + work.elapsed(steps):
            steps = min(steps, work.steps_by(due - start))
        self._commit(work, steps, client)
        while (due := client.due()) < self.now:
            boundary = start + work.elapsed(work.steps_by(due - start))
            self.offer(*client.land(boundary), client)

    def _commit(self, work: Work, steps: int, client: Client) -> None:
        start, end = self.now, self.now + work.elapsed(steps)
        self.usage.preempted(self.scheduler.victims)
        self.usage.waited(self.scheduler.unfinished, end - start)
        finished = self.scheduler.complete(work, steps, now=end)
        self.usage.performed(work, steps, start=start, returned=self.scheduler.returned)
        self.usage.completed(finished, end)
        self.now = end
        if finished:
            client.ended(finished, end)
