"""Scenarios whose trouble is not the engine's capacity: a slow client, a failing engine."""

from __future__ import annotations

import dataclasses
from random import Random

from servetop.core.config import StageConfig
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts, Outage, OutageKind, VirtualRunPlan
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.machines import draw_base, draw_workload, plan_of
from tests.judgement.queue_truth import lasting_queues, late_sends
from tests.judgement.scenario import Cause, Scenario, Truth

CLIENT_TROUBLES = ("sends slowly", "reads slowly", "becomes slow", "ramp")
ENGINE_TROUBLES = ("too small", "beyond the context", "all", "share", "for a while", "crash")
_RATES = (4.0, 60.0)
"""Saturated rates in requests/s of the engines that fail; they are loaded to at most 40 %."""
_LEAST = 10
"""Failed requests of an engine that fails."""
_FAST = (60.0, 250.0)
"""Saturated rates of the engines with a slow client: a request costs it some 10 to 50 ms."""


def slow_client(random: Random, name: str, *, trouble: str = "") -> Scenario | None:
    """Draw a sender that cannot keep its schedule, in front of an engine that could."""
    base = draw_base(random, draw_workload(random, inputs=(32, 150), outputs=(4, 30)))
    if not _FAST[0] <= base.saturated <= _FAST[1]:
        return None
    rate = random.uniform(0.25, 0.45) * base.saturated
    slower = random.uniform(0.5, 0.85) * rate
    busy = StageConfig(request_rate=rate, duration=random.choice((50.0, 70.0)))
    stages = random.choice(((busy,), (StageConfig(request_rate=0.4 * slower, duration=20.0), busy)))
    trouble = trouble or random.choice(CLIENT_TROUBLES)
    client = _costs(trouble, random, slower=slower, output_len=base.workload.output_len)
    match trouble:
        case "reads slowly":
            detail = f"reads {1 / client.per_chunk:.0f} tokens/s"
        case "becomes slow":
            detail = f"{client.slowdown:.1f} times slower from {client.slow_from:.0f} s"
            stages = (busy,)
        case _:
            detail = f"{client.per_request * 1e3:.0f} ms for each request"
    if trouble == "ramp":
        stages = (dataclasses.replace(busy, ramp_from=0.3 * rate),)
    plan = plan_of(base, name, stages, client=client)
    run = run_virtually(plan)
    first, onset = late_sends(run.records)
    if onset is None or lasting_queues(run):
        return None
    truth = Truth(
        cause=Cause.CLIENT,
        onset=onset,
        first_sign=first,
        until=max(record.sent or 0.0 for record in run.records),
        detail=detail,
        client_rate=_client_rate(client, base.workload.output_len),
    )
    return Scenario(name=name, kind="slow client", plan=plan, truth=truth, base=base).keeping(run)


def _costs(trouble: str, random: Random, *, slower: float, output_len: int) -> ClientCosts:
    """Costs with which the client sends or reads about `slower` requests per second."""
    if trouble == "reads slowly":
        return ClientCosts(per_chunk=1 / slower / output_len)
    if trouble == "becomes slow":
        factor = random.uniform(4.0, 10.0)
        return ClientCosts(per_request=1 / slower / factor, slow_from=random.uniform(15.0, 35.0), slowdown=factor)
    return ClientCosts(per_request=1 / slower)


def _client_rate(client: ClientCosts, output_len: int) -> float:
    """Requests per second that the slowed client can send and read."""
    work = client.slowdown * (client.per_request + output_len * client.per_chunk)
    idle = 1 - client.slowdown * client.per_beat / 0.020
    return idle / work


def failing_engine(random: Random, name: str, *, trouble: str = "") -> Scenario | None:
    """Draw an engine that refuses requests, answers with errors, or crashes."""
    base = draw_base(random, draw_workload(random, inputs=(64, 300), outputs=(30, 150)))
    if not _RATES[0] <= base.saturated <= _RATES[1]:
        return None
    rate, duration = random.uniform(0.2, 0.4) * base.saturated, random.choice((40.0, 60.0, 80.0))
    stages = (StageConfig(request_rate=rate, duration=duration),)
    start = round(random.uniform(0.3, 0.7) * duration, 1)
    trouble = trouble or random.choice(ENGINE_TROUBLES)
    if trouble in ("too small", "beyond the context"):
        small = _too_small(base, blocks=trouble == "too small")
        detail = ", ".join(f"{key} {value} too small" for key, value in small.settings.items()) + ": HTTP 400"
        return failing_run(plan_of(small, name, stages), name=name, detail=detail)
    outage, detail = _outage(trouble, random, start)
    return failing_run(plan_of(base, name, stages, outages=(outage,)), name=name, detail=detail)


def _too_small(base: ConstantRates, *, blocks: bool) -> ConstantRates:
    """The same engine with KV blocks for a third of an average request, or a context that some requests exceed."""
    mean = base.workload.input_len + base.workload.output_len
    settings = {"kv_blocks": max(2, int(0.3 * mean / 16))} if blocks else {"max_model_len": int(1.2 * mean)}
    return dataclasses.replace(base, settings=settings)


def _outage(trouble: str, random: Random, start: float) -> tuple[Outage, str]:
    """The outage, and how it is described."""
    match trouble:
        case "crash":
            return Outage(kind=OutageKind.CRASH, start=start), f"crash at {start:g} s"
        case "share":
            share = round(random.uniform(0.1, 0.5), 2)
            outage = Outage(kind=OutageKind.HTTP_500, start=start, share=share)
            return outage, f"HTTP 500 for {share:.0%} of the requests from {start:g} s on"
        case "for a while":
            until = start + random.choice((5.0, 10.0, 15.0))
            outage = Outage(kind=OutageKind.HTTP_500, start=start, until=until)
            return outage, f"HTTP 500 from {start:g} s to {until:g} s"
        case _:
            return Outage(kind=OutageKind.HTTP_500, start=start), f"HTTP 500 from {start:g} s on"


def failing_run(
    plan: VirtualRunPlan, *, name: str, detail: str, kind: str = "failing engine", least: int = _LEAST
) -> Scenario | None:
    """Return the scenario of an engine that fails requests; None for fewer than `least`, or if its queue lasts."""
    run = run_virtually(plan)
    failed = [record.done_at or 0.0 for record in run.records if record.error is not None]
    if len(failed) < least or lasting_queues(run):
        return None
    truth = Truth(
        cause=Cause.FAILING,
        onset=min(failed),
        first_sign=min(failed),
        until=max(failed),
        share=len(failed) / len(run.records),
        detail=detail,
    )
    return Scenario(name=name, kind=kind, plan=plan, truth=truth).keeping(run)
