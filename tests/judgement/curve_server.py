"""Synthetic servers: the latency is a given function of the load, with noise; nothing of an engine is modelled."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import NormalDist

import numpy as np

from servetop.run.search.search_evidence import Evidence, LoadObjective, Probe

CURVES = ("linear", "power", "hockey stick", "cliff", "non-monotone", "plateau")
NOISES = (0.0, 0.01, 0.03)
"""Standard deviations of the logarithm of the factor that all requests sent within a block of time share."""
_BLOCK = 5.0
"""Seconds of such a block."""
_MOST_BLOCKS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Latencies of one synthetic server over the load, relative to their limit: 1 at the largest load within it."""

    kind: str
    limit: float
    """Seconds; the objective is a share of end-to-end latencies within it."""
    share: float
    largest: float
    """The load at which exactly that share is within the limit."""
    concurrency: bool
    spread: float
    """Standard deviation of the logarithm of the latencies of requests at one load."""
    start: float
    """Relative latency at no load."""
    bend: float
    """Power, place of the knee, height of the jump, height of the bump, or level of the plateau, by kind."""

    def relative(self, load: float) -> float:
        """Return how large a latency is relative to that at the largest load."""
        at, start, bend = load / self.largest, self.start, self.bend
        match self.kind:
            case "power":
                return float(start + (1 - start) * at**bend)
            case "hockey stick":
                return start if at < bend else start + (1 - start) * (at - bend) / (1 - bend)
            case "cliff":
                return start + 0.1 * at if at <= 1 else bend * (1 + 0.1 * (at - 1))
            case "non-monotone":
                few = max(0.0, 1 - at / min(0.5, 10 / self.largest))
                return start + (1 - start) * at + bend * few
            case "plateau":
                risen = start + (bend - start) * min(1.0, at / 0.3)
                return risen if at < 0.9 else bend + (1 - bend) * (at - 0.9) / 0.1
        return start + (1 - start) * at

    def median(self, load: float, *, noise: float) -> float:
        """Return the median latency in seconds."""
        reach = NormalDist().inv_cdf(self.share) * math.hypot(self.spread, noise)
        return self.limit * self.relative(load) / math.exp(reach)

    @property
    def true(self) -> float:
        """The largest load within the objective; requests in flight are whole."""
        return float(math.floor(self.largest)) if self.concurrency else self.largest

    @property
    def objective(self) -> LoadObjective:
        """The objective of a search."""
        text = f"p{100 * self.share:g}_e2el<{1000 * self.limit:g}ms"
        return LoadObjective(text=text, metric="e2el", limit=self.limit, share=self.share)


def draw_curve(kind: str, number: int) -> Curve:
    """Draw a server of a kind; even numbers are closed loops, odd ones open loops."""
    random = Random(f"curve {kind} {number}")
    closed = number % 2 == 0
    low, high = (6.0, 600.0) if closed else (1.0, 60.0)
    start, bend = {
        "linear": ((0.2, 0.8), (0.0, 0.0)),
        "power": ((0.1, 0.5), (0.3, 2.5)),
        "hockey stick": ((0.3, 0.8), (0.7, 0.97)),
        "cliff": ((0.4, 0.8), (1.5, 5.0)),
        "non-monotone": ((0.2, 0.6), (0.1, 0.3)),
        "plateau": ((0.2, 0.6), (0.9, 0.99)),
    }[kind]
    return Curve(
        kind=kind,
        limit=float(f"{math.exp(random.uniform(math.log(1.0), math.log(8.0))):.2g}"),
        share=random.choice((0.9, 0.95, 0.99)),
        largest=math.exp(random.uniform(math.log(low), math.log(high))),
        concurrency=closed,
        spread=random.uniform(0.05, 0.3),
        start=random.uniform(*start),
        bend=random.uniform(*bend),
    )


class CurveServer:
    """One synthetic server under a load that changes; it has no queue."""

    def __init__(self, curve: Curve, *, noise: float, seed: int) -> None:
        self.curve = curve
        self.now = 0.0
        self._noise = noise
        self._random = Random(f"requests {seed}")
        blocks = Random(f"blocks {seed}")
        self._factors = [math.exp(noise * blocks.gauss()) for _ in range(_MOST_BLOCKS)]
        self._due: list[float] = []
        self._done: list[float] = []
        self._ends: list[float] = []
        """Ends of the requests in flight of a closed loop, a heap."""

    def keep(self, load: float, seconds: float) -> Probe:
        """Keep a load for a time, and return it."""
        begin, end = self.now, self.now + seconds
        median = self.curve.median(load, noise=self._noise)
        if self.curve.concurrency:
            self._keep_in_flight(round(load), median, until=end)
        else:
            at = begin + self._random.expovariate(load)
            while at < end:
                self._send(at, median)
                at += self._random.expovariate(load)
        self.now = end
        return Probe(load=load, begin=begin, end=end)

    def evidence(self, probes: Sequence[Probe], objectives: Sequence[LoadObjective]) -> Evidence:
        """Return what a recording would hold now; a request in flight counts as soon as its limit has passed."""
        (objective,) = objectives
        assert objective.limit is not None
        due, done = np.array(self._due), np.array(self._done)
        late = np.minimum(done, self.now) - due > objective.limit
        counted = late | (done <= self.now)
        return Evidence(
            probes=tuple(probes),
            due=due,
            done=np.where(done <= self.now, done, np.nan),
            counted=(counted.astype(np.float64),),
            missed=(late.astype(np.float64),),
            levels=(np.log(np.maximum(np.minimum(done, self.now) - due, 1e-6) / objective.limit),),
            limits=(objective.limit,),
            decided=(objective.decided,),
        )

    def latencies_since(self, at: float) -> list[float]:
        """Return the latencies in seconds of the requests that were sent from a time on and have ended, as sent."""
        pairs = zip(self._due, self._done, strict=True)
        return [done - due for due, done in pairs if due >= at and done <= self.now]

    def latencies_until(self, at: float) -> list[float]:
        """Return the latencies in seconds of the requests that ended from a time until now."""
        return [done - due for due, done in zip(self._due, self._done, strict=True) if at <= done <= self.now]

    def _keep_in_flight(self, load: int, median: float, *, until: float) -> None:
        while self._ends and self._ends[0] <= self.now:
            heapq.heappop(self._ends)
        while len(self._ends) < load:
            heapq.heappush(self._ends, self._send(self.now, median))
        while self._ends[0] <= until:
            at = heapq.heappop(self._ends)
            if len(self._ends) < load:
                heapq.heappush(self._ends, self._send(at, median))

    def _send(self, at: float, median: float) -> float:
        """Send a request, and return when it ends."""
        factor = self._factors[int(at / _BLOCK)]
        end = at + median * factor * math.exp(self.curve.spread * self._random.gauss())
        self._due.append(at)
        self._done.append(end)
        return end
