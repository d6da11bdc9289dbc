"""Draws of an engine that loses KV blocks, or pauses, and what is true of them."""

from __future__ import annotations

import pytest

from servetop.core.config import WorkloadConfig
from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from tests.judgement.engine_faults import longest
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


@pytest.fixture(scope="module")
def leaking() -> KnownTruth:
    return KnownTruth(scenario("kv-leak", 0, seed=SEED))


@pytest.fixture(scope="module")
def paused() -> KnownTruth:
    return KnownTruth(scenario("pauses", 0, seed=SEED))


def test_an_engine_waits_for_blocks_after_it_has_lost_most_of_them(leaking: KnownTruth) -> None:
    leak, queue = leaking.scenario.plan.leak, leaking.state.harmful_queues[0]
    assert leaking.cause is Cause.KV
    assert leak is not None
    assert leak.start < queue.start
    assert leaking.state.limit_share(AdmissionLimit.KV) > 0.75
    assert leaking.state.share_met(until=leak.start) == 1.0
    assert leaking.kept_at(leaking.last_rate) is False


def test_the_usable_blocks_are_those_that_were_not_lost(leaking: KnownTruth) -> None:
    leak, facts = leaking.scenario.plan.leak, leaking.state.run.header.engine
    assert leak is not None
    assert facts is not None
    used = [tick.engine.kv_blocks_used or 0.0 for tick in leaking.state.run.ticks[-8:] if tick.engine is not None]
    assert leak.floor - 0.01 < leaking.usable_blocks < leak.floor + 0.02
    assert 1 - min(used) / (facts.kv_blocks_total or 1) == pytest.approx(leaking.usable_blocks, abs=0.1)
    assert KnownTruth(scenario("kv", 0, seed=SEED)).usable_blocks == 1.0


def test_the_sequences_of_a_leaking_engine_are_fewer_than_its_blocks_should_hold(leaking: KnownTruth) -> None:
    ran, expected = leaking.ran_in_queues, sum(leaking.sequences_that_fit) / 2 / leaking.usable_blocks
    text = "it holds about {:.0f} sequences, of the {:.0f} that its 899 blocks should hold"
    assert _verdict(text.format(ran, expected), leaking) is True
    assert _verdict(text.format(ran, ran), leaking) is False
    assert _verdict(f"it holds about {ran:.0f} sequences", leaking) is True
    assert _verdict(f"its 899 blocks hold about {ran:.0f} sequences", leaking) is False


def test_the_rate_that_a_leaking_engine_sustains_is_not_that_of_the_time_before(leaking: KnownTruth) -> None:
    verdict = JudgedScenario(leaking.scenario).verdict
    assert leaking.scenario.base is not None
    assert verdict.sustainable == pytest.approx(leaking.scenario.base.largest(0.95), rel=0.25)
    assert verdict.sustainable_interval is not None
    assert verdict.sustainable_interval[1] < leaking.last_rate


def test_pauses_alone_let_requests_miss_their_objectives(paused: KnownTruth) -> None:
    plan = paused.scenario.plan
    assert paused.cause is Cause.STALL
    assert len(plan.pauses) >= 3
    assert all(1.0 <= each.seconds <= 3.0 for each in plan.pauses)
    assert paused.state.share_met() < 0.99
    assert paused.scenario.truth.onset == plan.pauses[0].start


def test_pauses_are_stalls_and_no_rate_above_capacity(paused: KnownTruth) -> None:
    rate = paused.last_rate
    assert paused.kept_at(rate) is True
    assert _verdict("stalled", paused) is True
    assert _verdict(f"rate above capacity at {rate:.1f} req/s", paused) is False
    assert _verdict(f"requests arrive faster than the engine serves them at {rate:.1f} req/s", paused) is False
    assert _verdict("look at the engine's log (5)", paused) is True
    assert _verdict("stalled", KnownTruth(scenario("kv", 0, seed=SEED))) is False


def test_the_pauses_are_counted_and_dated(paused: KnownTruth) -> None:
    silences = [start for start, until in paused.state.silences if until - start >= 1.0]
    clocks = [f"{int(at) // 60}:{int(at) % 60:02}" for at in silences]
    assert _verdict(f"{len(clocks)} such pauses, from {', '.join(clocks[:2])}, …", paused) is True
    assert _verdict(f"{len(clocks) + 3} such pauses, from {', '.join(clocks[:2])}", paused) is False
    assert _verdict(f"{len(clocks)} such pauses, from 0:01, {clocks[0]}", paused) is False
    assert _verdict("no token arrives for 9.5 s while requests are in flight", paused) is False


@pytest.mark.parametrize(
    ("workload", "tokens"),
    [
        (WorkloadConfig(input_len=100, output_len=50), 150),
        (WorkloadConfig(input_len=100, output_len=50, range_ratio=0.5), 225),
        (WorkloadConfig(lengths="lognormal:input_sigma=0.6,output_sigma=0.6,input_cap=400,output_cap=200"), 600),
    ],
)
def test_the_longest_request_is_that_of_the_distribution(workload: WorkloadConfig, tokens: float) -> None:
    assert longest(workload) == tokens


def test_the_headroom_before_a_leak_is_not_denied_by_the_growth_behind_it(leaking: KnownTruth) -> None:
    begin, end = leaking.state.last_load
    queue = leaking.state.harmful_queues[0]
    for at, right in ((queue.start + 2.0, None), (queue.start + 12.0, False)):
        (statement,) = statements_of("headroom", at=at, live=True)
        assert begin < at < end
        assert check(statement, leaking) is right
