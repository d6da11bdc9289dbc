"""Hand-made stages for tests of comparisons."""

from __future__ import annotations

import numpy as np

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.comparison.stage_sample import Cumulative, StageSample
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.core.arrays import FloatArray


def stage(
    *,
    rate: float = 8.0,
    seconds: float = 100.0,
    seed: int = 1,
    noise: int | None = None,
    ttft: float = 0.2,
    tokens_per_second: float = 1000.0,
    load: StageLoad | None = None,
    start: float = 0.0,
) -> StageSample:
    """A stage with requests at a constant rate, exponential TTFT, and even token throughput.

    `seed` draws the requests' own TTFT, `noise` the part that differs although the requests are the same.
    """
    count = int(rate * seconds)
    due = start + np.arange(count) / rate
    own = np.random.default_rng(seed).exponential(ttft, count) + ttft
    own *= 1.0 if noise is None else np.exp(np.random.default_rng(noise).normal(0.0, 0.01, count))
    at = start + np.arange(0.0, seconds + 0.25, 0.25)
    return StageSample(
        load=load or StageLoad(request_rate=rate),
        seed=seed,
        start=start,
        until=start + seconds,
        steady=True,
        number=np.arange(count),
        due=due,
        sent=due,
        done_at=due + 1.0,
        ok=np.ones(count, dtype=np.bool_),
        latencies={"ttft": own, "tpot": np.full(count, 0.02), "e2el": own + 0.8},
        prompt_tokens=np.full(count, 128.0),
        output_tokens=np.full(count, 40.0),
        counters={"output_tokens": steady_counter(at, tokens_per_second)},
    )


def steady_counter(at: FloatArray, per_second: float) -> Cumulative:
    """A quantity that grows evenly."""
    return Cumulative(at, (at - at[0]) * per_second)


def run(name: str, *stages: StageSample, start_spread: float = 0.0) -> ArmRun:
    """A recording with these stages."""
    return ArmRun(name=name, stages=stages, start_spread=StartSpread.everywhere(start_spread))


def ramp(low: float, high: float, *, seconds: float = 60.0) -> StageSample:
    """A linear ramp with a request every 0.1 s."""
    return stage(rate=10.0, seconds=seconds, load=StageLoad(request_rate=high, ramp_from=low))
