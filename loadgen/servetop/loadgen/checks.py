"""What is wrong with a workload, found before anything starts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.loadgen.arrival_laws import FASTEST_SPACED, RAMPED_LAWS, parse_arrivals
from servetop.loadgen.places import parse_think_time


def check_workload(workload: WorkloadConfig, stages: Sequence[StageConfig]) -> None:
    """UsageError for laws that do not exist, for numbers out of range, and for what does not go together."""
    _check_arrivals(workload, stages)
    if parse_think_time(workload.think_time, seed=0) is not None:
        open_loop = next((stage for stage in stages if not math.isinf(stage.request_rate)), None)
        if open_loop is not None:
            raise UsageError("--think-time is for closed loops: give --max-concurrency without a request rate")


def _check_arrivals(workload: WorkloadConfig, stages: Sequence[StageConfig]) -> None:
    law = parse_arrivals(workload.arrivals).name
    rates = [stage.request_rate for stage in stages if not math.isinf(stage.request_rate)]
    if workload.burstiness != 1.0 and law != "gamma":
        raise UsageError(f"--burstiness shapes gamma arrivals: leave it out with --arrivals {law}")
    if law == "spaced" and rates and max(rates) > FASTEST_SPACED:
        raise UsageError(
            f"--arrivals spaced: {max(rates):g} requests/s is less than a millisecond apart: give 1000 or less"
        )
    ramps = any(stage.ramp_from is not None for stage in stages)
    if ramps and law not in RAMPED_LAWS:
        raise UsageError(f"--arrivals {law} cannot follow a ramp: give {', '.join(RAMPED_LAWS)}")
    endless = any(stage.num_prompts is None and not math.isinf(stage.request_rate) for stage in stages)
    if law == "all-at-once" and endless:
        raise UsageError("--arrivals all-at-once sends without end: give --num-prompts")
