"""A second generator: any engine, workload, load and disturbance, independent of each other; its truth is read off."""

from __future__ import annotations

import dataclasses
import math
from random import Random
from typing import Any

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts, Outage, OutageKind
from tests.judgement.client_side import attached, delayed, shared_with_others, through_link
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.known_truth import LIMITS, KnownTruth
from tests.judgement.machines import CONTEXT, ENGINES, MACHINES, plan_of
from tests.judgement.run_state import RunState
from tests.judgement.scenario import Cause, Scenario
from tests.judgement.shown_truth import shown

_PROFILES = (*ENGINES, "tgi-2024", "vllm-0.2.1-swap")
_RATES = (0.5, 60.0)
_MOST_REQUESTS = 2500
DISTURBANCES = ("delay", "thin link", "others", "outage", "slow client")


def drawn_freely(random: Random, name: str) -> Scenario | None:
    """Draw a run; None for one with fewer than 20 or too many requests, or whose engine serves too slowly."""
    base = _base(random)
    if not _RATES[0] <= base.saturated <= _RATES[1]:
        return None
    replicas = random.choice((1, 1, 2))
    stages = _stages(random, replicas * base.saturated)
    if _requests(stages) > _MOST_REQUESTS:
        return None
    disturbance = random.choice(DISTURBANCES) if random.random() < 0.35 else ""
    parts = _parts(random, disturbance, until=sum(stage.duration or 0.0 for stage in stages))
    plan = plan_of(base, name, stages, replicas=replicas, router=random.choice(("round-robin", "random")), **parts)
    run = run_virtually(plan)
    if len(run.records) < 20:
        return None
    changed, rest = _disturbed(random, disturbance, run, base)
    if len(changed.records) < 20:
        return None
    found = shown(plan, kind="drawn freely", base=rest, detail=disturbance, run=changed)
    return _blamed(found, disturbance, engine=RunState(run))


def _log(random: Random, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))


def _base(random: Random) -> ConstantRates:
    model, gpu = random.choice(MACHINES)
    settings: dict[str, Any] = {"max_model_len": CONTEXT}
    if random.random() < 0.6:
        settings["max_num_seqs"] = round(_log(random, 2, 1024))
    if random.random() < 0.6:
        settings["kv_blocks"] = round(_log(random, CONTEXT / 16, 20_000))
    return ConstantRates(
        model=model,
        gpu=gpu,
        engine_profile=random.choice(_PROFILES),
        settings=settings,
        workload=_workload(random),
        objective=round(_log(random, 0.2, 3.0), 2),
        tpot=round(_log(random, 0.02, 0.2), 3) if random.random() < 0.25 else math.inf,
        seed=random.randrange(1 << 20),
    )


def _workload(random: Random) -> WorkloadConfig:
    work = WorkloadConfig(input_len=round(_log(random, 16, 1500)), output_len=round(_log(random, 4, 500)))
    changes: dict[str, Any] = {}
    match random.choice(("fixed", "uniform", "lognormal")):
        case "uniform":
            changes["range_ratio"] = round(random.uniform(0.1, 0.9), 2)
        case "lognormal":
            sigmas = f"input_sigma={random.uniform(0.2, 1.4):.2f},output_sigma={random.uniform(0.2, 1.4):.2f}"
            changes["lengths"] = f"lognormal:{sigmas},input_cap=3000,output_cap=1000"
    if random.random() < 0.2:
        changes |= {"prefix_len": random.choice((64, 256, 512)), "num_prefixes": random.choice((1, 8, 40))}
    arrivals: tuple[dict[str, Any], ...] = ({"burstiness": round(_log(random, 0.2, 3.0), 2)}, {"arrivals": "constant"})
    return dataclasses.replace(work, **changes, **random.choice(arrivals))


def _stages(random: Random, rate: float) -> tuple[StageConfig, ...]:
    """One to four loads in a row, each a constant rate, a ramp, or a closed loop; or a rate with a limit."""
    if random.random() < 0.12:
        return (StageConfig(max_concurrency=round(_log(random, 2, 128)), duration=random.uniform(15.0, 60.0)),)
    limit = round(_log(random, 2, 64)) if random.random() < 0.12 else None
    stages, last = [], _log(random, 0.1, 2.0) * rate
    for _ in range(random.choice((1, 1, 2, 3, 4))):
        begin = last if random.random() < 0.35 else None
        last = _log(random, 0.1, 2.2) * rate
        duration = round(random.uniform(10.0, 60.0))
        stages.append(StageConfig(request_rate=last, ramp_from=begin, max_concurrency=limit, duration=float(duration)))
    return tuple(stages)


def _requests(stages: tuple[StageConfig, ...]) -> float:
    rates = ((stage.request_rate, stage.ramp_from, stage.duration or 0.0) for stage in stages)
    return sum((rate + (rate if begin is None else begin)) / 2 * time for rate, begin, time in rates if rate < math.inf)


def _parts(random: Random, disturbance: str, *, until: float) -> dict[str, Any]:
    """The fields of the plan that disturb it."""
    if disturbance == "outage":
        start, share = random.uniform(0.0, 0.8) * until, _log(random, 0.005, 1.0)
        end = random.choice((math.inf, start + random.uniform(3.0, 20.0)))
        return {"outages": (Outage(kind=OutageKind.HTTP_500, start=start, until=end, share=share),)}
    if disturbance == "slow client":
        return {"client": ClientCosts(per_request=_log(random, 1e-3, 0.1))}
    return {}


def _open(stage: StageConfig) -> bool:
    return math.isfinite(stage.request_rate) and stage.max_concurrency is None


def _disturbed(
    random: Random, disturbance: str, run: VirtualRun, base: ConstantRates
) -> tuple[VirtualRun, ConstantRates | None]:
    """The run as the client sees it, and what its engine sustains with it; None if that has no meaning."""
    offered = all(_open(stage) for stage in run.header.config.stages)  # else a limit in flight sends after responses
    match disturbance:
        case "delay" if offered:
            seconds = _log(random, 0.02, 1.0)
            return attached(delayed(run, seconds)), dataclasses.replace(base, objective=base.objective - seconds)
        case "thin link" if offered:
            rate = sum(record.output_tokens for record in run.records) / run.ticks[-1].end
            return attached(through_link(run, _log(random, 0.4, 4.0) * rate)), None
        case "others" if offered:
            share = random.uniform(0.1, 0.6)
            ours = {record.id for record in run.records if random.random() < share}
            return attached(shared_with_others(run, ours or {run.records[0].id})), base
        case "outage" | "slow client":
            return run, None
        case _:
            return run, base


def _blamed(found: Scenario, disturbance: str, *, engine: RunState) -> Scenario:
    """The scenario with the disturbance as its cause, if the client's own load does not explain it."""
    known, cause = KnownTruth(found), found.truth.cause
    if found.run is not engine.run and disturbance == "others":
        cause = Cause.OTHERS if cause in LIMITS and known.kept_at(known.highest_rate) else cause
    elif disturbance in ("delay", "thin link") and engine.share_met() >= 0.95 > known.state.share_met():
        cause = Cause.NETWORK
    return dataclasses.replace(found, truth=dataclasses.replace(found.truth, cause=cause)).keeping(found.run)
