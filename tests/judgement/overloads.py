"""Scenarios in which the engine cannot serve the offered load: too few KV blocks, too small a batch, too slow."""

from __future__ import annotations

from random import Random

from servetop.core.config import StageConfig
from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from servetop.simulator.virtual_run.virtual_run import run_virtually
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.machines import ENGINES, draw_base, draw_workload, plan_of
from tests.judgement.queue_truth import first_sign, lasting_queues
from tests.judgement.scenario import Cause, Scenario, Truth

CAUSES = {AdmissionLimit.KV: Cause.KV, AdmissionLimit.BATCH: Cause.BATCH, AdmissionLimit.BUDGET: Cause.RATE}
_CLEAR = 0.75
"""Fraction of the waiting time that one limit must account for."""
_CALM = 0.97
"""Fraction of the requests that an engine must serve in time at 30 % of its saturated rate."""
RATES = (1.0, 25.0)
"""Saturated rates in requests/s that give enough requests, and not too many."""


def kv_overload(random: Random, name: str) -> Scenario | None:
    """Draw an engine whose KV blocks hold 8 to 40 sequences."""
    return _overload(kv_base(random), random, name=name, cause=Cause.KV)


def batch_overload(random: Random, name: str) -> Scenario | None:
    """Draw an engine with a batch limit of 4 to 24 and room for far more sequences."""
    return _overload(batch_base(random), random, name=name, cause=Cause.BATCH)


def rate_overload(random: Random, name: str) -> Scenario | None:
    """Draw long prompts with short outputs, for which prefill takes all the time."""
    return _overload(rate_base(random), random, name=name, cause=Cause.RATE)


def known_knee(random: Random, name: str) -> Scenario | None:
    """Draw any engine under a ramp through its knee; the limit that acts is read from the run."""
    base = random.choice((kv_base, batch_base, rate_base))(random)
    rate = base.saturated
    if not RATES[0] <= rate <= RATES[1]:
        return None
    low, high = random.uniform(0.2, 0.4) * rate, random.uniform(1.4, 1.8) * rate
    stages: tuple[StageConfig, ...]
    if random.random() < 0.5:
        stages = (StageConfig(request_rate=high, ramp_from=low, duration=random.choice((75.0, 90.0, 120.0))),)
    else:
        steps = random.choice((6, 8, 10))
        stages = tuple(
            StageConfig(request_rate=low + (high - low) * step / (steps - 1), duration=15.0) for step in range(steps)
        )
    return _judged(base, stages, name=name, kind="ramp", cause=None)


def _overload(base: ConstantRates, random: Random, *, name: str, cause: Cause) -> Scenario | None:
    rate = base.saturated
    if not RATES[0] <= rate <= RATES[1]:
        return None
    mild = random.random() < 0.3
    low, high = random.uniform(0.3, 0.55) * rate, random.uniform(*((1.15, 1.4) if mild else (1.5, 2.2))) * rate
    calm = StageConfig(request_rate=low, duration=random.choice((20.0, 30.0)))
    busy = StageConfig(request_rate=high, duration=60.0 if mild else random.choice((30.0, 40.0)))
    after = StageConfig(request_rate=0.6 * low, duration=random.choice((15.0, 30.0)))
    ramp = StageConfig(request_rate=high, ramp_from=low, duration=random.choice((30.0, 50.0)))
    stages = random.choice(((calm, busy), (calm, busy, after), (calm, ramp), (calm, ramp, busy, after)))
    return _judged(base, stages, name=name, kind=f"{cause} overload", cause=cause)


def _judged(
    base: ConstantRates, stages: tuple[StageConfig, ...], *, name: str, kind: str, cause: Cause | None
) -> Scenario | None:
    """The scenario with the truth of its run; None if another limit acts, or none for most of the time."""
    plan = plan_of(base, name, stages)
    run = run_virtually(plan)
    queues = lasting_queues(run)
    if not queues or base.share_in_time(0.3 * base.saturated) < _CALM:
        return None
    queue = queues[0]
    found = CAUSES[queue.limit]
    if queue.share < _CLEAR or cause not in (None, found) or queue.start < 8.0 or queue.until - queue.start < 12.0:
        return None
    truth = Truth(
        cause=found,
        onset=queue.start,
        first_sign=first_sign(run.admissions, queue.limit),
        until=queue.until,
        share=queue.share,
    )
    return Scenario(name=name, kind=kind, plan=plan, truth=truth, base=base).keeping(run)


def kv_base(random: Random) -> ConstantRates:
    """Draw an engine whose KV blocks hold 8 to 40 sequences."""
    workload = draw_workload(random, inputs=(64, 500), outputs=(60, 300))
    tokens = workload.input_len + workload.output_len
    blocks = max(random.randint(8, 40) * tokens // 16, 4096 // 16)
    engines = (*ENGINES, "tgi-2024", "vllm-0.2.1-swap")
    return draw_base(random, workload, engines=engines, settings={"kv_blocks": blocks})


def batch_base(random: Random) -> ConstantRates:
    """Draw an engine with a batch limit of 4 to 24 and room for far more sequences."""
    workload = draw_workload(random, inputs=(32, 300), outputs=(60, 250))
    batch = random.choice((4, 8, 12, 16, 24))
    blocks = 4 * batch * (workload.input_len + workload.output_len) // 16 + 512
    return draw_base(random, workload, settings={"max_num_seqs": batch, "kv_blocks": blocks})


def rate_base(random: Random) -> ConstantRates:
    """Draw long prompts with short outputs, for which prefill takes all the time."""
    workload = draw_workload(random, inputs=(600, 1800), outputs=(2, 16))
    return draw_base(random, workload, settings={"kv_blocks": random.choice((6000, 8000, 12000))})
