"""Alike servers of which each gets its own requests at a constant rate, one of them slowed: who is named slower?

`python -m tests.judgement.equal_rates [--seed N ...]` prints how soon and how long the slow one is, and false alarms.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.analysis.fleet.slower_servers import STEP, PacedServer, slower_factors
from servetop.analysis.fleet.token_times import TokenTimes
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.config import StageConfig
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.simulator.scheduling.build import build_scheduler
from servetop.simulator.virtual_run.virtual_run import _Run
from servetop.simulator.virtual_run.virtual_run_plan import VirtualRunPlan
from tests.judgement.machines import draw_base, draw_workload, plan_of
from tests.judgement.report_page import say

SLOWED_AT, SECONDS = 50.0, 120.0
WITHIN = 5.0
"""Seconds within which the slow server should be named."""
_ENGINES = ("vllm-0.5", "vllm-0.6", "vllm-current", "sglang-current")
_RATES = (4.0, 80.0)
_TICKS = 4
"""Ticks between two scrapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is drawn: loads relative to what a server sustains, and how many times slower the second one becomes."""

    factor: float = 1.0
    loads: tuple[float, float] = (0.3, 0.97)
    shares: tuple[float, ...] = (1.0, 1.0, 1.0)
    """Loads of the servers relative to each other."""


KINDS = {
    "slowed 1.6 times": Kind(factor=1.6, loads=(0.15, 0.7)),
    "slowed 2 times": Kind(factor=2.0, loads=(0.15, 0.7)),
    "slowed 4 times": Kind(factor=4.0, loads=(0.15, 0.7)),
    "slowed 2 times, overloaded": Kind(factor=2.0, loads=(1.1, 1.9)),
    "equal": Kind(),
    "six equal": Kind(shares=(1.0,) * 6),
    "unequal loads": Kind(loads=(0.2, 0.6), shares=(0.5, 1.0, 1.6)),
    "one overloaded": Kind(loads=(0.5, 0.8), shares=(1.0, 2.0, 1.0)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """For which part of the time servers are named slower, and when the slow one was first."""

    first: float
    """Seconds after it was slowed; NaN if it is not named, or none was slowed."""
    held: float
    """Fraction of the time from WITHIN after that on in which it is named."""
    wrong: float
    """Fraction of the time in which another one is."""


class _SlowedRun(_Run):
    """A virtual run whose engine takes `factor` times as long for everything from SLOWED_AT on."""

    def __init__(self, plan: VirtualRunPlan, *, factor: float) -> None:
        super().__init__(plan)
        self._spec = dataclasses.replace(plan.spec, time_scale=factor * plan.spec.time_scale)
        self._slowed = factor == 1.0
        self._gaps = np.zeros(2)
        self.scrapes: list[SeriesScrape] = []

    def token_gap(self, seconds: float, count: int) -> None:
        super().token_gap(seconds, count)
        self._gaps += (seconds * count, count)

    def _end_tick(self) -> None:
        now = self._clock.now()
        if now >= SLOWED_AT and not self._slowed:
            self._slowed = True
            for engine in self._engines._engines:
                engine.set_cost(build_scheduler(self._spec).cost)
        super()._end_tick()
        if len(self._ticks) % _TICKS == 0 and self._sample is not None:
            seconds, tokens = self._gaps.tolist()
            values = {
                "vllm:inter_token_latency_seconds_sum": seconds,
                "vllm:inter_token_latency_seconds_bucket{le=+Inf}": tokens,
                "vllm:prompt_tokens_total": self._sample.prompt_tokens_total or 0.0,
            }
            names = None if self.scrapes else "\n".join(values)
            self.scrapes.append(SeriesScrape(at=now, names=names, numbers=pack_numbers(values.values())))


def drawn_servers(seed: int, kind: str) -> list[PacedServer]:
    """Draw alike servers, each with requests of its own; equal for equal seeds."""
    random, wanted = Random(f"{seed}/{kind}"), KINDS[kind]
    while True:
        workload = draw_workload(random, inputs=(32, 600), outputs=(40, 300))
        base = draw_base(random, workload, engines=_ENGINES)
        if _RATES[0] <= base.saturated <= _RATES[1]:
            break
    rate = random.uniform(*wanted.loads) / wanted.factor * base.saturated
    servers = []
    for number, share in enumerate(wanted.shares):
        own = dataclasses.replace(base, seed=random.randrange(1 << 20))
        stages = (StageConfig(request_rate=share * rate, duration=SECONDS),)
        run = _SlowedRun(plan_of(own, kind, stages), factor=wanted.factor if number == 1 else 1.0)
        history, times = ScrapeHistory(), TokenTimes()
        ticks = run.run().ticks
        history.extend(run.scrapes)
        times.follow(history)
        servers.append(PacedServer(number=number, group="", times=times, history=TickHistory(ticks)))
    return servers


def named(servers: Sequence[PacedServer], *, slowed: bool) -> Named:
    """Return who is named while the load lasts."""
    grid: FloatArray = np.arange(STEP, SECONDS, STEP)
    found = slower_factors(servers, grid) > 0
    wrong = np.delete(found, 1, axis=0) if slowed else found
    times = grid[found[1]] - SLOWED_AT
    right = slowed and bool((times >= 0).any())
    return Named(
        first=float(times[times >= 0][0]) if right else math.nan,
        held=float(found[1][grid >= SLOWED_AT + WITHIN].mean()) if slowed else math.nan,
        wrong=float(wrong.any(axis=0).mean()),
    )


def main(argv: Sequence[str]) -> int:
    """Print a row for each kind."""
    parser = argparse.ArgumentParser(prog="python -m tests.judgement.equal_rates", description=__doc__)
    parser.add_argument("--seed", type=int, nargs="+", default=list(range(420, 436)), help="what is drawn from")
    parser.add_argument("--kind", action="append", default=[], choices=list(KINDS), help="only this kind; repeat")
    options = parser.parse_args(argv)
    say("| servers | draws | named within 5 s | named, of the time after that | draws with another one named |")
    say("|---|---:|---:|---:|---:|")
    for kind in options.kind or KINDS:
        slowed = KINDS[kind].factor > 1
        found = [named(drawn_servers(seed, kind), slowed=slowed) for seed in options.seed]
        soon = f"{sum(each.first <= WITHIN for each in found)} of {len(found)}" if slowed else "–"
        held = f"{statistics.mean(each.held for each in found):.0%}" if slowed else "–"
        say(f"| {kind} | {len(found)} | {soon} | {held} | {sum(each.wrong > 0 for each in found)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
