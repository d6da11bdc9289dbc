"""The largest load of a simulated engine within the objectives of a search, predicted in virtual time.

It is coarse: a search only begins at half of it, so a prediction that is wrong by some factor costs time only.
"""

from __future__ import annotations

import math

import numpy as np

from servetop.analysis.statistics.percentiles import Distribution
from servetop.core.config import RunConfig, StageConfig
from servetop.core.errors import ServetopError
from servetop.run.search.objective_text import ERROR_RATE, GOODPUT
from servetop.run.search.search_evidence import LoadObjective
from servetop.run.search.search_setup import SearchSetup
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.predict.cell_clients import VirtualSender
from servetop.simulator.predict.cell_result import cell_result, latency_of
from servetop.simulator.predict.predict import SimulatedEngine
from servetop.simulator.predict.usage_integrals import UsageIntegrals
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.workload.validation import check_fits

_REQUESTS = 400
"""Requests of one virtual run, ..."""
_LEAST_REQUESTS = 50
_TOKENS = 1_000_000
"""... or fewer, so that they have about this many tokens, ..."""
_TURNOVERS = 4
"""... but in a closed loop at least this many for each in flight."""
_STEP = 4.0
"""Factor between loads until one is missed."""
_PRECISION = 1.2
"""Factor between a load that is kept and one that is missed at which the bisection ends."""


def predicted_load(config: RunConfig, engine: SimulatedEngine) -> float | None:
    """Return the largest load, requests/s or in flight, at which all objectives of all tiers are predicted to be kept.

    It is within `--low` and `--high`. None if the engine cannot start or serve this workload, which the run reports.
    """
    setup = SearchSetup.of(config)
    try:
        spec = sim_spec(engine.model, gpu=engine.gpu, engine=engine.engine_profile, settings=engine.settings)
        check_fits(config.workload, spec.context_limit)
        return _bisected(_VirtualRuns(config, setup, spec), setup)
    except ServetopError:
        return None


def _bisected(runs: _VirtualRuns, setup: SearchSetup) -> float:
    search = setup.search
    low, high = search.low, search.low
    while runs.keeps(high):
        low = high
        if high >= search.high:
            return high
        high = min(_STEP * high, search.high)
    while high > _PRECISION * low and not (search.concurrency and high - low <= 1):
        middle = math.sqrt(low * high)
        middle = min(max(round(middle), low + 1), high - 1) if search.concurrency else middle
        low, high = (middle, high) if runs.keeps(middle) else (low, middle)
    return low


class _VirtualRuns:
    """Serves the workload of a search at one load after the other, each on an engine of its own."""

    def __init__(self, config: RunConfig, setup: SearchSetup, spec: SimSpec) -> None:
        self._config = config
        self._setup = setup
        self._spec = spec
        workload = config.workload
        tokens = workload.input_len + workload.output_len
        self._requests = min(_REQUESTS, max(_LEAST_REQUESTS, _TOKENS // tokens))

    def keeps(self, load: float) -> bool:
        """Whether all objectives are kept at a load, and in an open loop the queue does not grow."""
        engine = VirtualEngine(build_scheduler(self._spec))
        sender = VirtualSender(self._config.workload, self._spec, seed=self._config.seed, sweep=False)
        engine.run(sender.client(self._stage(load)))
        if not self._setup.search.concurrency and cell_result([engine], objectives={}).saturated:
            return False
        users = int(load) if self._setup.search.concurrency else 0  # those of the start arrive all at once
        figures = (self._figure(engine.usage, each, skipped=users) for each in self._setup.tiers.objectives)
        pairs = zip(figures, self._setup.tiers.objectives, strict=True)
        return all(math.isnan(figure) or figure <= objective.most for figure, objective in pairs)

    def _stage(self, load: float) -> StageConfig:
        if self._setup.search.concurrency:
            users = int(load)
            return StageConfig(max_concurrency=users, num_prompts=max(self._requests, _TURNOVERS * users))
        rate = load * self._spec.time_scale  # a virtual client takes as much longer as its engine
        return StageConfig(request_rate=rate, num_prompts=self._requests)

    def _figure(self, usage: UsageIntegrals, objective: LoadObjective, *, skipped: int) -> float:
        """Return the share of samples beyond the limit, or the mean in seconds; NaN without samples."""
        served = [seq for seq in usage.sequences[skipped:] if seq.finished_at is not None]
        ended = len(served) + usage.refused
        if objective.metric == ERROR_RATE:
            return usage.refused / ended if ended else math.nan
        if objective.metric == GOODPUT:
            limits = self._setup.goodput.items()
            good = sum(all(latency_of(seq, name) <= limit for name, limit in limits) for seq in served)
            return 1 - good / ended if ended else math.nan
        if objective.metric == "itl":
            values = usage.gap_distribution()
        else:
            values = Distribution.of(np.array([latency_of(seq, objective.metric) for seq in served]))
        if objective.mean or not values.count:
            return values.mean
        refused = 0 if objective.metric == "itl" else usage.refused
        late = int(values.weights[values.values > (objective.limit or math.inf)].sum())
        return (late + refused) / (values.count + refused)
