"""Scenarios for a watch alone: a server that fails some requests, and clients that abort or send wrong ones."""

from __future__ import annotations

import dataclasses
from random import Random

from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import Outage, OutageKind
from tests.judgement.client_troubles import failing_engine, failing_run
from tests.judgement.machines import draw_base, draw_workload, plan_of
from tests.judgement.queue_truth import lasting_queues
from tests.judgement.scenario import Cause, Scenario, Truth

SHARES = (0.02, 0.05, 0.2)
"""Fractions of the requests that a server fails."""
ABORTS, WRONG = "clients abort", "clients send wrong"
_RATES = (8.0, 80.0)
"""Saturated rates in requests/s of these engines; they are loaded to at most 60 %."""
_LEAST = 3
"""Failed requests from which any share can be told from chance."""
_LEAST_ABORTED = 0.05
"""Fraction of the requests that clients abort."""


def failing_share(random: Random, name: str, *, share: float) -> Scenario | None:
    """Draw a server that answers a share of the requests with HTTP 500 from some time on, chosen at random."""
    base = draw_base(random, draw_workload(random, inputs=(32, 300), outputs=(20, 150)))
    if not _RATES[0] <= base.saturated <= _RATES[1]:
        return None
    rate, duration = random.uniform(0.2, 0.6) * base.saturated, random.choice((60.0, 80.0, 100.0))
    start = round(random.uniform(0.25, 0.6) * duration, 1)
    outage = Outage(kind=OutageKind.HTTP_500, start=start, share=share)
    plan = plan_of(base, name, (StageConfig(request_rate=rate, duration=duration),), outages=(outage,))
    detail = f"HTTP 500 for {share:.0%} of the requests from {start:g} s on"
    return failing_run(plan, name=name, detail=detail, kind=f"fails {100 * share:g} %", least=_LEAST)


def aborting_clients(random: Random, name: str) -> Scenario | None:
    """Draw clients that disconnect before their last requests are served, every few seconds."""
    base = draw_base(random, draw_workload(random, inputs=(32, 300), outputs=(60, 250)))
    if not _RATES[0] <= base.saturated <= _RATES[1]:
        return None
    stage = StageConfig(request_rate=random.uniform(0.3, 0.6) * base.saturated, duration=random.uniform(5.0, 9.0))
    plan = plan_of(base, name, (stage,) * random.randint(8, 10))
    patience = random.uniform(0.1, 0.6)
    config = dataclasses.replace(plan.config, drain_at_stages=True, drain_timeout=patience)
    plan = dataclasses.replace(plan, config=config)
    run = run_virtually(plan)
    aborted = sum(record.status is RequestStatus.CANCELLED for record in run.records)
    failed = any(record.error is not None and record.status is RequestStatus.ERROR for record in run.records)
    if aborted < _LEAST_ABORTED * len(run.records) or failed or lasting_queues(run):
        return None
    truth = Truth(cause=Cause.HEALTHY, detail=f"{aborted} of {len(run.records)} requests aborted by clients")
    return Scenario(name=name, kind=ABORTS, plan=plan, truth=truth).keeping(run)


def wrong_requests(random: Random, name: str) -> Scenario | None:
    """Draw clients some of whose requests exceed the context, and are answered with HTTP 400."""
    found = failing_engine(random, name, trouble="beyond the context")
    return None if found is None else dataclasses.replace(found, kind=WRONG).keeping(found.run)
