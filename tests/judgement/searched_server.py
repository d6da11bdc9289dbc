"""A simulated engine under a load that a search changes as it goes, in virtual time."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.config import StageConfig
from servetop.run.search.search_evidence import Evidence, LoadObjective, Probe
from servetop.run.search.search_plan import SearchPlan
from servetop.simulator.model.sim_request import SimRequest, SimSequence
from servetop.simulator.predict.client_requests import RequestStreams
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler
from servetop.workload.stages.stage_draws import DrawSeeds
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.uneven_clock import UnevenClock


class Searchable(Protocol):
    """What a search can be made of."""

    def keep(self, load: float, seconds: float) -> Probe:
        """Keep a load for a time, and return it."""
        ...

    def evidence(self, probes: Sequence[Probe], objectives: Sequence[LoadObjective]) -> Evidence:
        """Return what a recording would hold now."""
        ...


class SearchedServer:
    """One engine that serves requests at Poisson arrivals, or with a number of them in flight.

    `noise` is that of its speed: `UnevenClock`. Its requests have times of the engine, and all others are of the wall.
    """

    def __init__(self, base: ConstantRates, *, seed: int, concurrency: bool = False, noise: float = 0.0) -> None:
        draws = DrawSeeds(base.workload, seed=seed, sweep=True).next(StageConfig(request_rate=1.0, duration=1.0))
        self._requests = RequestStreams(base.workload, base.spec).of(draws)
        self._engine = VirtualEngine(build_scheduler(base.spec))
        self._clock = UnevenClock(noise, seed=seed)
        self._random = random.Random(f"arrivals {seed}")
        self._closed = concurrency
        self._limit = 0
        self._sent: list[SimSequence] = []
        self._ended: list[SimSequence] = []
        self.now = 0.0

    feedback = False

    def keep(self, load: float, seconds: float) -> Probe:
        """Keep a load for a time, and return it."""
        begin, end = self.now, self.now + seconds
        if self._closed:
            self._limit = round(load)
            self._refill(self._clock.engine_time(begin))
        else:
            at = begin + self._random.expovariate(load)
            while at < end:
                arrival = self._clock.engine_time(at)
                self._engine.advance(arrival, self)
                self._send(arrival)
                at += self._random.expovariate(load)
        self._engine.advance(self._clock.engine_time(end), self)
        self.now = end
        return Probe(load=load, begin=begin, end=end)

    def evidence(self, probes: Sequence[Probe], objectives: Sequence[LoadObjective]) -> Evidence:
        """Return what a recording would hold now."""
        due, first, ended = self._times(self._sent)
        done = np.where(ended > self.now, math.nan, ended)
        counted, missed, sums, levels = [], [], [], []
        for objective in objectives:
            assert objective.limit is not None
            values = self._values(self._sent, objective.metric)
            known = ~np.isnan(values) if objective.metric == "tpot" else ~np.isnan(values) & (values > objective.limit)
            known |= ~np.isnan(done)
            if objective.metric == "ttft":
                known |= ~np.isnan(first)
            late = values > objective.limit
            counted.append(known.astype(np.float64))
            missed.append(np.where(known, late, 0.0))
            levels.append(np.where(objective.mean, np.nan, np.log(np.maximum(values, 1e-6) / objective.limit)))
            sums.append(np.where(known & objective.mean, values, 0.0))
        return Evidence(
            probes=tuple(probes),
            due=due,
            done=done,
            counted=tuple(counted),
            missed=tuple(missed),
            sums=tuple(sums),
            levels=tuple(levels),
            limits=tuple(each.limit or math.nan for each in objectives),
            decided=tuple(each.decided for each in objectives),
        )

    @property
    def in_flight(self) -> int:
        """Requests in flight."""
        return len(self._sent) - len(self._ended)

    def sent_since(self, number: int) -> list[SimSequence]:
        """Return the requests that were sent after the first `number` of them, in order."""
        return self._sent[number:]

    def values(self, objective: LoadObjective) -> FloatArray:
        """Return the objective's metric of all requests that ended; shape (requests,)."""
        return self._values(self._ended, objective.metric)

    def _times(self, sequences: Sequence[SimSequence]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return when requests arrived, had their first token and ended, NaN for what has not happened."""
        times = [
            (
                seq.arrival,
                math.nan if seq.first_token_at is None else seq.first_token_at,
                math.nan if seq.finished_at is None else seq.finished_at,
            )
            for seq in sequences
        ]
        due, first, ended = self._clock.wall_times(np.array(times, dtype=np.float64).reshape(-1, 3)).T
        return due, first, ended

    def _values(self, sequences: Sequence[SimSequence], metric: str) -> FloatArray:
        """Return a metric of requests; of one in flight how long it has waited, or NaN for TPOT. Shape (requests,)."""
        due, first, ended = self._times(sequences)
        if metric == "tpot":
            gaps = np.array([max(seq.output_tokens - 1, 1) for seq in sequences], dtype=np.float64)
            return np.asarray((ended - first) / gaps)
        at = first if metric == "ttft" else ended
        return np.where(np.isnan(at), self.now, at) - due

    def _send(self, at: float) -> None:
        request = self._requests.take()
        self._engine.offer(at, (request,), self)
        seq = self._engine.scheduler.waiting[-1]
        assert seq.request is request
        self._sent.append(seq)

    def _refill(self, at: float) -> None:
        while self.in_flight < self._limit:
            self._send(at)

    def due(self) -> float:
        return float("inf")

    def send(self, boundary: float, /) -> tuple[float, Sequence[SimRequest]]:
        return boundary, ()

    def on_finished(self, finished: Sequence[SimSequence], now: float) -> None:
        self._ended += finished
        if self._closed:
            self._refill(now)

    def on_refused(self, request: SimRequest, at: float) -> None:
        raise AssertionError("a search sends only requests that fit")


def searched(server: Searchable, plan: SearchPlan, objectives: Sequence[LoadObjective]) -> Evidence:
    """Search to the end, and return the evidence."""
    probes: list[Probe] = []
    while True:
        evidence = server.evidence(probes, objectives)
        step = plan.next(evidence)
        if step is None:
            return evidence
        kept = server.keep(step.load, step.seconds)
        probes.append(Probe(load=kept.load, begin=kept.begin, end=kept.end, purpose=step.purpose))
