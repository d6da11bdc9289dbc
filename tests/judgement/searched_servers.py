"""Random servers with objectives, for the judgement of searches, and the largest load of each by long runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Self

import numpy as np

from servetop.core.config import WorkloadConfig
from servetop.run.search.search_evidence import LoadObjective
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.machines import draw_base, draw_workload
from tests.judgement.searched_server import SearchedServer

KINDS = ("prefill-bound", "batch-bound", "KV-bound", "decode-bound", "closed loop", "wide lengths")
WIDE_CLOSED_LOOP = "closed loop, wide lengths"
_TRUE_SECONDS = 2400.0
"""Length of a run that decides about one load, after a third of it to settle."""
_TRUE_RUNS = 3
_START_SECONDS = 60.0
"""Time in which the first requests of a closed loop are sent, if not all at once, ..."""
_STEPS = 1.6 ** -np.arange(8.0, 0.0, -1.0)
_STARTS: tuple[Callable[[float], Sequence[float]], ...] = (
    lambda _: (),
    lambda load: tuple(_STEPS * load),
    lambda load: range(1, round(load)),
)
"""... and the loads before: none, those of a load that rises by factors, those of one that rises by one request."""
_TRUE_PRECISION = 0.01
"""Relative width of the interval at which the bisection ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestLoad:
    """The largest load within an objective: from `least` to `most`, as it may depend on how the requests began."""

    least: float
    most: float

    @classmethod
    def of(cls, stored: float | Sequence[float]) -> Self:
        """Return the load that is stored: one number, or one for each beginning."""
        loads = stored if isinstance(stored, Sequence) else (stored,)
        return cls(least=min(loads), most=max(loads))

    @property
    def middle(self) -> float:
        """The geometric mean of both."""
        return math.sqrt(self.least * self.most)

    def is_in(self, low: float, high: float) -> bool:
        """Whether an interval contains one of the loads."""
        return low <= self.most and self.least <= high

    def error(self, load: float | None) -> float:
        """Return the relative error of a load; infinity without one."""
        if load is None:
            return math.inf
        return max(load / self.most - 1, 1 - load / self.least, 0.0)

    def __str__(self) -> str:
        least, most = f"{self.least:.3g}", f"{self.most:.3g}"
        return least if least == most else f"{least} to {most}"


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchedCase:
    """A server, what is searched on it, and by which objective."""

    name: str
    base: ConstantRates
    objective: LoadObjective
    concurrency: bool = False
    noise: float = 0.0
    """Of the engine's speed: standard deviation of the logarithm of a factor for each block of time."""

    def server(self, seed: int) -> SearchedServer:
        """The server with arrivals and requests of its own."""
        return SearchedServer(self.base, seed=seed, concurrency=self.concurrency, noise=self.noise)

    def keeps(self, load: float, *, before: Sequence[float] = ()) -> bool:
        """Whether long runs at a load keep the objective, and their queue does not grow.

        Each of the loads before it is kept for as long, a minute in all.
        """
        figures = []
        for run in range(_TRUE_RUNS):
            server = self.server(10_000 + run)
            for smaller in before:
                server.keep(smaller, _START_SECONDS / len(before))
            server.keep(load, _TRUE_SECONDS / 3)
            in_flight = server.in_flight
            kept = server.keep(load, _TRUE_SECONDS)
            if not self.concurrency and server.in_flight > max(2 * in_flight, in_flight + 0.05 * load * _TRUE_SECONDS):
                return False
            found = server.evidence([kept], [self.objective])
            within = found.due >= kept.begin
            totals = found.sums[0] if self.objective.mean else found.missed[0]
            figures.append(float(totals[within].sum() / max(found.counted[0][within].sum(), 1.0)))
        return float(np.mean(figures)) <= self.objective.most

    def largest_loads(self) -> list[float]:
        """Return the largest load that long runs keep, by bisection; NaN if even the least one is not kept.

        In a closed loop it is one for each beginning: requests of equal lengths that were sent together stay together,
        and their prompts interrupt the others all at once.
        """
        return [self._largest(start) for start in (_STARTS if self.concurrency else _STARTS[:1])]

    def _largest(self, start: Callable[[float], Sequence[float]]) -> float:
        low, high = (1.0, 2.0) if self.concurrency else (0.05, 0.1)
        if not self.keeps(low, before=start(low)):
            return math.nan
        while self.keeps(high, before=start(high)):
            low, high = high, 2 * high
        while high > (1 + _TRUE_PRECISION) * low and not (self.concurrency and high - low <= 1):
            middle = float(round((low + high) / 2)) if self.concurrency else math.sqrt(low * high)
            low, high = (middle, high) if self.keeps(middle, before=start(middle)) else (low, middle)
        return low if self.concurrency else math.sqrt(low * high)


MEAN = "mean "
"""Begins the name of a kind whose objective is on a mean."""


def draw_case(kind: str, seed: int) -> SearchedCase:
    """Draw a server of a kind; one that begins with `mean ` has the same server with an objective on a mean."""
    if kind.startswith(MEAN):
        return _with_mean(draw_case(kind.removeprefix(MEAN), seed), Random(f"search {kind} {seed}"))
    random = Random(f"search {kind} {seed}")
    outputs = {"prefill-bound": (10, 60), "batch-bound": (60, 200), "KV-bound": (150, 400)}.get(kind, (60, 250))
    workload = draw_workload(random, inputs=(600, 2000) if kind == "prefill-bound" else (80, 500), outputs=outputs)
    if kind in ("wide lengths", WIDE_CLOSED_LOOP):
        caps = "input_cap=3000,output_cap=1000"
        workload = WorkloadConfig(
            input_len=workload.input_len,
            output_len=workload.output_len,
            lengths=f"lognormal:input_sigma=1.0,output_sigma=1.0,{caps}",
        )
    settings = {
        "batch-bound": {"max_num_seqs": random.choice((8, 16, 32, 64))},
        "KV-bound": {"kv_blocks": random.choice((400, 700, 1200))},
    }.get(kind, {})
    base = draw_base(random, workload, settings=settings)
    metric = {"decode-bound": "tpot", "closed loop": "tpot"}.get(kind, random.choice(("ttft", "ttft", "e2el")))
    share = random.choice((0.9, 0.95, 0.99))
    alone = _alone(base, metric, share)
    limit = alone * random.uniform(1.5, 3.0) if metric != "ttft" else max(0.2, 4 * alone)
    limit = float(f"{limit:.2g}")
    text = f"p{100 * share:g}_{metric}<{1000 * limit:g}ms"
    objective = LoadObjective(text=text, metric=metric, limit=limit, share=share)
    return SearchedCase(
        name=f"{kind} {seed}", base=base, objective=objective, concurrency=kind.startswith("closed loop")
    )


def _with_mean(case: SearchedCase, random: Random) -> SearchedCase:
    metric = case.objective.metric
    server = SearchedServer(case.base, seed=0, concurrency=True)
    server.keep(1, 600.0)
    alone = float(server.values(case.objective).mean())
    limit = float(f"{alone * (random.uniform(2, 6) if metric == 'ttft' else random.uniform(1.3, 2.5)):.2g}")
    objective = LoadObjective(text=f"mean_{metric}<{1000 * limit:g}ms", metric=metric, limit=limit, share=0, mean=True)
    return replace(case, name=f"{MEAN}{case.name}", objective=objective)


def _alone(base: ConstantRates, metric: str, share: float) -> float:
    """Return the quantile of a metric of requests that are served one after the other."""
    server = SearchedServer(base, seed=0, concurrency=True)
    server.keep(1, 600.0)
    objective = LoadObjective(text="", metric=metric, limit=1.0, share=share)
    return float(np.quantile(server.values(objective), share))
