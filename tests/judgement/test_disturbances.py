"""Draws in which the engine alone does not explain what the client sees, or the replicas are not equal."""

from __future__ import annotations

import dataclasses

import pytest

from servetop.analysis.diagnosis.run_verdict import RunCause
from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from tests.judgement.judged import JudgedScenario
from tests.judgement.kinds import scenario
from tests.judgement.known_truth import KnownTruth
from tests.judgement.scenario import Cause
from tests.judgement.statement_checks import check
from tests.judgement.statements import statements_of

SEED = 22


def _verdict(text: str, truth: KnownTruth) -> bool | None:
    (statement,) = statements_of(text)
    return check(statement, truth)


def test_others_overload_an_engine_that_would_serve_the_client() -> None:
    truth = KnownTruth(scenario("others", 0, seed=SEED))
    assert truth.overloaded
    assert truth.kept_at(truth.highest_rate) is True
    assert truth.state.in_flight.max() < (truth.state.waiting + truth.state.running).max()
    assert _verdict("other traffic", truth) is True
    assert _verdict("requests arrive faster than the engine serves them at 1.0 req/s", truth) is False


@pytest.mark.parametrize("kind", ["slow-network", "thin-network"])
def test_a_network_is_late_while_the_engine_is_in_time(kind: str) -> None:
    truth = KnownTruth(scenario(kind, 0, seed=SEED))
    assert truth.cause is Cause.NETWORK
    assert not truth.overloaded
    assert truth.state.share_met() < 0.9
    assert _verdict("rate above capacity from 0:10", truth) is False


@pytest.mark.parametrize(
    ("goodput", "cause"),
    [({"ttft": 0.2, "tpot": 0.001}, RunCause.NETWORK), ({"ttft": 9.0, "tpot": 0.001}, RunCause.MISSED)],
)
def test_a_network_delay_is_not_what_tokens_after_the_first_wait_for(
    goodput: dict[str, float], cause: RunCause
) -> None:
    """Most requests in flight are on their way to the engine, whose own time between tokens misses the objective."""
    drawn = scenario("free", 15, seed=89)
    config = dataclasses.replace(drawn.run.header.config, goodput=goodput)
    run = dataclasses.replace(drawn.run, header=dataclasses.replace(drawn.run.header, config=config))
    late = [
        dataclasses.replace(tick, client=dataclasses.replace(tick.client, good=0, good_due=0)) for tick in run.ticks
    ]
    judged = JudgedScenario(dataclasses.replace(drawn).keeping(dataclasses.replace(run, ticks=tuple(late))))
    assert judged.verdict.cause is cause


def test_one_of_two_unequal_replicas_is_overloaded() -> None:
    truth = KnownTruth(scenario("unequal", 0, seed=SEED))
    waiting = [max(state.waiting for state in states) for states in truth.state.run.replica_admissions]
    assert waiting[1] > 3 * waiting[0]
    assert _verdict("headroom", truth) is False


def test_a_throttled_gpu_no_longer_serves_the_load() -> None:
    drawn = scenario("throttled", 0, seed=SEED)
    assert drawn.plan.gpus is not None
    assert drawn.truth.onset is not None
    assert drawn.truth.onset >= drawn.plan.gpus.throttle_from
    assert KnownTruth(drawn).state.limit_share(AdmissionLimit.BUDGET) > 0.5


def test_a_few_requests_fail_in_an_overload() -> None:
    truth = KnownTruth(scenario("failures", 0, seed=SEED))
    assert 0 < truth.state.failed < 0.05 * len(truth.state.records)
    assert truth.overloaded
    assert truth.cause in (Cause.KV, Cause.BATCH, Cause.RATE)


def test_two_equal_replicas_share_the_load() -> None:
    drawn = scenario("replicas", 1, seed=SEED)
    counts = [sum(record.replica == replica for record in drawn.run.records) for replica in (0, 1)]
    assert abs(counts[0] - counts[1]) <= 1
