"""Draws pairs of virtual runs of one workload: both clean, or one with a single contaminated condition."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from servetop.analysis.confounding.confounder import ConfounderKind
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.scheduling.build import block_count
from servetop.simulator.virtual_run.virtual_gpu import GpuTelemetry
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts, VirtualRunPlan
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.machines import CONTEXT, ENGINES, draw_base, draw_workload, plan_of

LOADS = {"low": (0.3, 0.7), "near saturation": (0.85, 1.0)}
"""Offered load as a fraction of the saturated rate."""
CACHING = ("vllm-current", "sglang-current")
_RATES = (2.0, 40.0)
"""Saturated rates in requests/s whose runs are long enough for readings of the GPU, and short enough to simulate."""
_REQUESTS = (400, 700)
_ATTEMPTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two runs, of which at most one is contaminated."""

    name: str
    planted: ConfounderKind | None
    runs: tuple[VirtualRun, VirtualRun]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedRun:
    """One run of a pair."""

    plan: VirtualRunPlan
    detail: str
    shown_workload: WorkloadConfig | None = None
    """The workload in its header, if its requests deviate from what was configured."""

    def run(self) -> VirtualRun:
        """Run it, and return what its recording would hold."""
        run = run_virtually(self.plan)
        if self.shown_workload is None:
            return run
        config = dataclasses.replace(run.header.config, workload=self.shown_workload)
        return dataclasses.replace(run, header=dataclasses.replace(run.header, config=config))


Contaminate = Callable[[Random, VirtualRunPlan, ConstantRates], _PlannedRun | None]
"""Contaminates a clean plan; None if it would have no effect on this machine and workload."""


def draw_pair(kind: ConfounderKind | None, number: int, *, seed: int) -> Pair:
    """Return pair `number` of a kind, the same for the same seed; RuntimeError if no draw succeeds."""
    name = f"{kind or 'clean'} {number} of seed {seed}"
    for attempt in range(_ATTEMPTS):
        pair = _drawn(Random(f"{seed}/{kind}/{number}/{attempt}"), kind, name)
        if pair is not None:
            return pair
    raise RuntimeError(f"{name}: none of {_ATTEMPTS} draws has the contamination")


def _drawn(random: Random, kind: ConfounderKind | None, name: str) -> Pair | None:
    base = _machine(random, kind)
    if not _RATES[0] <= base.saturated <= _RATES[1]:
        return None
    load = random.choice(list(LOADS))
    replicas = random.choice((2, 3, 4)) if kind is ConfounderKind.REPLICAS else random.choice((1, 1, 1, 2))
    plan = _clean_plan(random, base, name, rate=random.uniform(*LOADS[load]) * base.saturated, replicas=replicas)
    equal_seeds = random.random() < 0.5
    other = _restarted(random, plan if equal_seeds else _reseeded(plan, random.randrange(1 << 20)))
    contaminated = _contaminated(random, kind, plan, other, base)
    if contaminated is None:
        return None
    runs = [each.run() for each in contaminated]
    random.shuffle(runs)
    seeds = "equal seeds" if equal_seeds else "other seeds"
    machine = f"{base.model} on {replicas} × {base.gpu}, {base.engine_profile}"
    return Pair(
        name=name,
        planted=kind,
        runs=(runs[0], runs[1]),
        detail=f"{' and '.join(each.detail for each in contaminated)}; {machine}, {load}, {seeds}",
    )


def _contaminated(
    random: Random, kind: ConfounderKind | None, a: VirtualRunPlan, b: VirtualRunPlan, base: ConstantRates
) -> tuple[_PlannedRun, _PlannedRun] | None:
    """Contaminate the second run, or for a third of the clean pairs both in the same way; None without an effect."""
    clean = _PlannedRun(plan=a, detail="clean")
    if kind is not None:
        second = CONTAMINATIONS[kind](random, b, base)
        return None if second is None else (clean, second)
    if random.random() < 2 / 3:
        return clean, _PlannedRun(plan=b, detail="clean")
    kinds = [each for each in CONTAMINATIONS if each is not ConfounderKind.REPLICAS or a.replicas > 1]
    first = CONTAMINATIONS[random.choice(kinds)](random, a, base)
    if first is None:
        return None
    return first, dataclasses.replace(first, plan=_reseeded(first.plan, b.config.seed), detail="the same")


def _machine(random: Random, kind: ConfounderKind | None) -> ConstantRates:
    caching = kind is ConfounderKind.CACHE
    workload = draw_workload(random, inputs=(100, 400), outputs=(30, 150))
    if caching or random.random() < 0.5:
        prefix: dict[str, Any] = {
            "prefix_len": random.choice((128, 256, 512)),
            "num_prefixes": random.choice((1, 8, 40, 150)),
        }
        workload = dataclasses.replace(workload, **prefix)
    return draw_base(random, workload, engines=CACHING if caching else ENGINES)


def _clean_plan(random: Random, base: ConstantRates, name: str, *, rate: float, replicas: int) -> VirtualRunPlan:
    requests = random.randint(*_REQUESTS)
    rate *= replicas
    main = StageConfig(request_rate=rate, duration=requests / rate)
    half = StageConfig(request_rate=0.6 * rate, duration=0.5 * requests / rate)
    warm_up = StageConfig(request_rate=0.5 * rate, duration=0.2 * requests / rate, warmup=True)
    stages = random.choice(((main,), (warm_up, main), (half, main)))
    whole = base.engine_profile in CACHING and random.random() < 0.5
    return plan_of(
        base,
        name,
        stages,
        replicas=replicas,
        router=random.choice(("round-robin", "random")),
        gpus=GpuTelemetry(droop=random.uniform(0.0, 0.06)),
        whole_prompts=whole,
    )


def _restarted(random: Random, plan: VirtualRunPlan) -> VirtualRunPlan:
    """Return the plan of another start of the engine, which finds nearly as many KV blocks."""
    blocks = round(random.uniform(0.996, 1.004) * block_count(plan.spec))
    return dataclasses.replace(plan, settings={**plan.settings, "kv_blocks": blocks})


def _reseeded(plan: VirtualRunPlan, seed: int) -> VirtualRunPlan:
    return dataclasses.replace(plan, config=dataclasses.replace(plan.config, seed=seed))


def _warm_cache(random: Random, plan: VirtualRunPlan, base: ConstantRates) -> _PlannedRun | None:
    """The run repeats an earlier one: its prompts, or only their many prefixes, are in the cache when it begins."""
    workload = base.workload
    mean = workload.input_len + workload.prefix_len
    fit = int(0.9 * block_count(plan.spec) * plan.spec.engine.block_size / mean)
    count = min(int(random.uniform(0.5, 1.0) * _REQUESTS[1]), fit)
    if count < 150:
        return None
    if not plan.whole_prompts and (workload.num_prefixes < 100 or workload.prefix_len < 0.4 * mean):
        return None
    what = "prompts" if plan.whole_prompts else f"{workload.num_prefixes} prefixes"
    return _PlannedRun(
        plan=dataclasses.replace(plan, cached_requests=count), detail=f"warm cache: {what} of {count} requests"
    )


def _other_lengths(random: Random, plan: VirtualRunPlan, base: ConstantRates) -> _PlannedRun | None:
    """The requests are longer or shorter than configured, or as long on average but of another distribution."""
    workload = base.workload
    what = random.choice(("prompts", "outputs", "both", "spread"))
    changed: dict[str, Any] = {}
    if what == "spread":
        if workload.lengths or workload.range_ratio:
            return None
        changed = {"range_ratio": random.uniform(0.3, 0.5)}
        detail = f"lengths spread by ±{changed['range_ratio']:.0%}"
    else:
        size = random.uniform(0.05, 0.4) if plan.config.seed == base.seed else random.uniform(0.25, 0.45)
        factor = 1 + random.choice((-1, 1)) * size
        names = [
            *(("input_len", "prefix_len") if what != "outputs" else ()),
            *(("output_len",) if what != "prompts" else ()),
        ]
        changed = {name: max(round(factor * getattr(workload, name)), 0) for name in names}
        detail = f"{what} × {factor:.2f}"
    config = dataclasses.replace(plan.config, workload=dataclasses.replace(workload, **changed))
    return _PlannedRun(
        plan=dataclasses.replace(plan, config=config), detail=detail, shown_workload=plan.config.workload
    )


def _busy_client(random: Random, plan: VirtualRunPlan, base: ConstantRates) -> _PlannedRun | None:
    """The sender needs about as long for a request as passes until the next one, from the start or later."""
    rate = plan.config.stages[-1].request_rate
    work = random.uniform(0.85, 1.5) / rate
    what = random.choice(("sends slowly", "reads slowly", "becomes slow"))
    end = sum(stage.duration or 0.0 for stage in plan.config.stages)
    costs = ClientCosts(per_request=work)
    if what == "reads slowly":
        costs = ClientCosts(per_chunk=work / base.workload.output_len)
    elif what == "becomes slow":
        costs = ClientCosts(per_request=work / 5, slowdown=5.0, slow_from=random.uniform(0.2, 0.5) * end)
    return _PlannedRun(plan=dataclasses.replace(plan, client=costs), detail=f"the client {what}")


def _other_kv_size(random: Random, plan: VirtualRunPlan, base: ConstantRates) -> _PlannedRun | None:
    """The engine found another number of KV blocks at its start."""
    blocks = block_count(plan.spec)
    factor = random.choice((random.uniform(0.5, 0.97), random.uniform(1.03, 1.5)))
    if factor * blocks * plan.spec.engine.block_size < CONTEXT:
        return None
    settings: Mapping[str, Any] = {**plan.settings, "kv_blocks": round(factor * blocks)}
    return _PlannedRun(
        plan=dataclasses.replace(plan, settings=settings), detail=f"KV blocks × {factor:.2f} of {blocks}"
    )


def _throttled_gpu(random: Random, plan: VirtualRunPlan, base: ConstantRates) -> _PlannedRun | None:
    """The GPUs run at lower clocks, from the start or from some time on."""
    end = sum(stage.duration or 0.0 for stage in plan.config.stages)
    since = random.choice((0.0, random.uniform(0.0, 0.5) * end))
    share = random.uniform(0.55, 0.92)
    reason = random.choice(("power cap", "heat"))
    assert plan.gpus is not None
    gpus = dataclasses.replace(plan.gpus, throttle_from=since, throttled_to=share, reason=reason)
    return _PlannedRun(
        plan=dataclasses.replace(plan, gpus=gpus), detail=f"clocks × {share:.2f} from {since:.0f} of {end:.0f} s"
    )


def _missing_replica(random: Random, plan: VirtualRunPlan, base: ConstantRates) -> _PlannedRun | None:
    """One of the replicas does not answer."""
    missing = random.randrange(plan.replicas)
    return _PlannedRun(
        plan=dataclasses.replace(plan, missing=(missing,)), detail=f"replica {missing} of {plan.replicas} is missing"
    )


CONTAMINATIONS: Mapping[ConfounderKind, Contaminate] = {
    ConfounderKind.CACHE: _warm_cache,
    ConfounderKind.LENGTHS: _other_lengths,
    ConfounderKind.CLIENT: _busy_client,
    ConfounderKind.KV_SIZE: _other_kv_size,
    ConfounderKind.GPU_CLOCKS: _throttled_gpu,
    ConfounderKind.REPLICAS: _missing_replica,
}
