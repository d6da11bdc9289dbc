"""The virtual-time driver: advances a scheduler from event to event without waiting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Protocol

from servetop.simulator.model.sim_request import SimRequest, SimSequence
from servetop.simulator.model.work import Work, grid_after
from servetop.simulator.predict.usage_integrals import UsageIntegrals
from servetop.simulator.scheduling.scheduler import Scheduler


class Client(Protocol):
    """Sends requests to simulated engines; it is called at iteration boundaries and completions, and has no clock."""

    feedback: bool
    """Whether send times depend on completions."""

    def due(self) -> float:
        """Time of the next request; infinity if there is none, or none before a completion."""
        ...

    def send(self, boundary: float, /) -> tuple[float, Sequence[SimRequest]]:
        """Return the arrival time and the requests that are due, at the first iteration boundary after `due`."""
        ...

    def on_finished(self, finished: Sequence[SimSequence], now: float) -> None:
        """Handle the requests that completed at `now`."""
        ...

    def on_refused(self, request: SimRequest, at: float) -> None:
        """Handle a request that the engine could never serve."""
        ...


class VirtualEngine:
    """One scheduler with a virtual clock; `stride` limits the decode steps of one advance (1: step by step)."""

    def __init__(self, scheduler: Scheduler, *, stride: int | None = None) -> None:
        self.scheduler = scheduler
        self.usage = UsageIntegrals()
        self.now = 0.0
        self._stride = stride
        self._index = itertools.count()

    def offer(self, at: float, requests: Sequence[SimRequest], client: Client) -> None:
        """Queue requests that arrive at `at`; refuse those that the engine could never serve."""
        if at < self.now:
            self.usage.add_waiting(len(requests), self.now - at)
        self.now = max(self.now, grid_after(at))
        for request in requests:
            seq = SimSequence(request, index=next(self._index), arrival=at)
            if self.scheduler.accepts(seq):
                self.scheduler.add(seq)
                self.usage.add_request(seq)
            else:
                self.usage.refused += 1
                client.on_refused(request, at)

    def run(self, client: Client) -> UsageIntegrals:
        """Serve all requests of the client to the last token."""
        scheduler = self.scheduler
        while True:
            while (due := client.due()) <= self.now:
                self.offer(*client.send(self.now), client)
            work = scheduler.plan(self.now)
            if work is None:
                wake = min(due, scheduler.opens_at())
                if wake == math.inf:
                    return self.usage
                self._idle(wake)
                continue
            self._run_work(work, client)

    def advance(self, until: float, client: Client) -> None:
        """Run until the first iteration boundary at or after `until`, or until there is no more work."""
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
        """Run one iteration, or wait until the scheduler admits a request, at most until `until`."""
        work = self.scheduler.plan(self.now)
        if work is None:
            self._idle(min(self.scheduler.opens_at(), until))
        else:
            self._commit(work, 1, client)

    def _idle(self, until: float) -> None:
        if until > self.now:
            self.usage.add_waiting(self.scheduler.unfinished, until - self.now)
            self.now = grid_after(until)

    def _run_work(self, work: Work, client: Client) -> None:
        """Run the work up to the next scheduling decision, and queue the requests that arrive meanwhile."""
        start, steps = self.now, min(work.steps, self._stride or work.steps)
        due = client.due()
        if work.admits and due < start + work.elapsed(steps):
            steps = min(steps, work.steps_by(due - start))
        self._commit(work, steps, client)
        while (due := client.due()) < self.now:
            boundary = start + work.elapsed(work.steps_by(due - start))
            self.offer(*client.send(boundary), client)

    def _commit(self, work: Work, steps: int, client: Client) -> None:
        start, end = self.now, self.now + work.elapsed(steps)
        self.usage.add_preempted(self.scheduler.preempted)
        self.usage.add_waiting(self.scheduler.unfinished, end - start)
        finished = self.scheduler.complete(work, steps, now=end)
        self.usage.add_work(work, steps, start=start, swapped_in=self.scheduler.swapped_in)
        self.usage.add_finished(finished, end)
        self.now = end
        if finished:
            client.on_finished(finished, end)
