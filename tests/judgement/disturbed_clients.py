"""Scenarios in which the engine is not alone with the client: other clients on it, a slow or thin network between."""

from __future__ import annotations

import dataclasses
from random import Random

from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from tests.judgement.client_side import attached, delayed, shared_with_others, through_link
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.hard_loads import any_base, constant
from tests.judgement.machines import plan_of
from tests.judgement.run_state import RunState
from tests.judgement.scenario import Cause, Scenario
from tests.judgement.shown_truth import shown


def other_clients(random: Random, name: str) -> Scenario | None:
    """Draw an engine that would serve the client's rate, and is overloaded by the requests of others."""
    base = any_base(random)
    if base is None:
        return None
    share, load = random.uniform(0.15, 0.4), random.uniform(1.2, 2.0) * base.saturated
    run = run_virtually(plan_of(base, name, constant(load, random.choice((40.0, 60.0)))))
    ours = {record.id for record in run.records if random.random() < share}
    if len(ours) < 20 or not RunState(run).overloaded:
        return None
    found = _seen(base, name, shared_with_others(run, ours), kind="other clients")
    kept = base.share_in_time(share * load) >= 0.97
    return _because(found, Cause.OTHERS) if kept else None


def slow_network(random: Random, name: str) -> Scenario | None:
    """Draw a round trip that takes a large part of the objective, or more, at an engine that serves the rate."""
    healthy = _healthy(random, name)
    if healthy is None:
        return None
    base, run = healthy
    seconds = random.uniform(0.5, 1.3) * base.objective
    rest = dataclasses.replace(base, objective=base.objective - seconds)
    return _by_network(_seen(rest, name, delayed(run, seconds), kind="slow network"))


def thin_network(random: Random, name: str) -> Scenario | None:
    """Draw a link that carries fewer tokens than the engine generates."""
    healthy = _healthy(random, name)
    if healthy is None:
        return None
    run = healthy[1]
    rate = sum(record.output_tokens for record in run.records) / RunState(run).load_end
    return _by_network(_seen(None, name, through_link(run, random.uniform(0.5, 0.95) * rate), kind="thin network"))


def _healthy(random: Random, name: str) -> tuple[ConstantRates, VirtualRun] | None:
    base = any_base(random)
    if base is None or base.workload.output_len < 20:
        return None
    plan = plan_of(base, name, constant(random.uniform(0.3, 0.7) * base.saturated, random.choice((40.0, 60.0))))
    run = run_virtually(plan)
    state = RunState(run)
    return None if state.queues or state.preemptions or state.share_met() < 0.99 else (base, run)


def _seen(base: ConstantRates | None, name: str, run: VirtualRun, *, kind: str) -> Scenario:
    stages = run.header.config.stages
    known = base or ConstantRates(
        model=run.header.config.engine.model,
        gpu="a100-40",
        engine_profile="vllm-current",
        settings={},
        workload=run.header.config.workload,
        objective=run.header.config.goodput["ttft"],
    )
    plan = plan_of(known, name, stages)
    return shown(plan, kind=kind, base=base, run=attached(run))


def _by_network(found: Scenario) -> Scenario | None:
    """The network is to blame if the engine serves in time what the client has late."""
    met = RunState(found.run).share_met()
    return None if met >= 0.9 else _because(found, Cause.NETWORK)


def _because(found: Scenario, cause: Cause) -> Scenario:
    return dataclasses.replace(found, truth=dataclasses.replace(found.truth, cause=cause)).keeping(found.run)
