"""The rates that an engine sustains: long runs at a constant rate in virtual time, independent of any other run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from servetop.core.arrays import BoolArray
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.predict.cell_clients import VirtualSender
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec

TOLERANCE = 0.02
"""Relative width of the interval at which a bisection ends."""
_WARM_UP = 0.15
"""Fraction of a run whose requests do not count."""
_RUNS = 6
"""Runs with different seeds; random arrivals spread the result of a single one by up to 20 %."""
_UNSURE = (0.2, 0.99)
"""The first run decides if its fraction is not between these."""
_REQUESTS = 1200
"""Requests of a run, within the limits of its duration."""
_DURATIONS = (120.0, 400.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConstantRates:
    """One engine under one workload; every rate is run once."""

    model: str
    gpu: str
    engine_profile: str
    settings: Mapping[str, Any]
    workload: WorkloadConfig
    objective: float
    """Longest acceptable TTFT in seconds."""
    tpot: float = math.inf
    """Longest acceptable TPOT in seconds."""
    seed: int = 0
    _shares: dict[tuple[float, int], float] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def spec(self) -> SimSpec:
        """The simulated engine."""
        return sim_spec(self.model, gpu=self.gpu, engine=self.engine_profile, settings=self.settings)

    @cached_property
    def saturated(self) -> float:
        """Requests per second that the engine completes if 400 are sent at once, start and end included."""
        usage = self._run(StageConfig(num_prompts=400)).usage
        return len(usage.finished) / usage.ended_at if usage.finished else 0.0

    def share_in_time(self, rate: float) -> float:
        """Fraction of the requests that meet the objectives at a constant rate, over several runs."""
        met = [self._share(rate, run=0)]
        if _UNSURE[0] < met[0] < _UNSURE[1]:
            met += [self._share(rate, run=run) for run in range(1, _RUNS)]
        return sum(met) / len(met)

    def reaches(self, rate: float, share: float) -> bool:
        """Whether that fraction is at least `share`; without the runs that can no longer change the answer."""
        met = [self._share(rate, run=0)]
        if not _UNSURE[0] < met[0] < _UNSURE[1]:
            return met[0] >= share
        while len(met) < _RUNS and sum(met) < share * _RUNS <= sum(met) + _RUNS - len(met):
            met.append(self._share(rate, run=len(met)))
        return sum(met) >= share * _RUNS

    def largest(self, share: float) -> float:
        """Largest constant rate at which that fraction of the requests meets the objective; 0 if none does."""
        low, high = 0.0, self.saturated
        while self.reaches(high, share):
            low, high = high, 1.3 * high
        if not low:
            low = next((rate for rate in (high / 2**step for step in range(1, 6)) if self.reaches(rate, share)), 0.0)
            high = min(high, 2 * low)
        while low and high - low > TOLERANCE * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.reaches(middle, share) else (low, middle)
        return low

    def _share(self, rate: float, *, run: int) -> float:
        """Fraction of one run."""
        if (rate, run) not in self._shares:
            low, high = _DURATIONS
            duration = min(max(_REQUESTS / rate, low), high)
            met = self._in_time(StageConfig(request_rate=rate, duration=duration), after=_WARM_UP * duration, run=run)
            self._shares[rate, run] = float(met.mean()) if met.size else 0.0
        return self._shares[rate, run]

    def _in_time(self, stage: StageConfig, *, after: float, run: int) -> BoolArray:
        finished = self._run(stage, run=run).usage.finished
        return np.array([self._met(seq) for seq in finished if seq.arrival >= after], dtype=np.bool_)

    def _met(self, seq: SimSequence) -> bool:
        first = seq.first_token_at or 0.0
        per_token = ((seq.finished_at or 0.0) - first) / max(seq.output_tokens - 1, 1)
        return first - seq.arrival <= self.objective and per_token <= self.tpot

    def _run(self, stage: StageConfig, *, run: int = 0) -> VirtualEngine:
        engine = VirtualEngine(build_scheduler(self.spec))
        engine.run(VirtualSender(self.workload, self.spec, seed=self.seed + 1 + run).client(stage))
        return engine
