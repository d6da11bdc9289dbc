"""Statements that name no cause: an overload of unknown limit, a load that is held back, a throttled GPU."""

from __future__ import annotations

import pytest

from tests.judgement.kinds import scenario
from tests.judgement.known_truth import KnownTruth
from tests.judgement.statement_checks import check
from tests.judgement.statements import statements_of
from tests.judgement.unnamed_checks import felt_onsets

SEED = 22
UNKNOWN = "the queue grows at 5.0 req/s; which limit holds it is unknown: the engine exports no queue and KV usage"


def _verdict(text: str, truth: KnownTruth, *, at: float | None = None) -> bool | None:
    (statement,) = statements_of(text, at=at)
    return check(statement, truth)


@pytest.fixture(scope="module")
def batch() -> KnownTruth:
    return KnownTruth(scenario("batch", 4, seed=SEED))


@pytest.fixture(scope="module")
def healthy() -> KnownTruth:
    return KnownTruth(scenario("healthy", 0, seed=SEED))


@pytest.fixture(scope="module")
def held() -> KnownTruth:
    return KnownTruth(scenario("held", 0, seed=SEED))


@pytest.mark.parametrize("text", ["overloaded", "objectives missed", UNKNOWN])
def test_an_overload_is_one_without_its_cause(text: str, batch: KnownTruth, healthy: KnownTruth) -> None:
    assert _verdict(text, batch) is True
    assert _verdict(text, healthy) is False


def test_an_overload_without_its_cause_may_begin_with_the_requests_that_miss_their_objectives() -> None:
    """The engine computes prompts in its batch for half a minute before any request waits for it."""
    prompts = KnownTruth(scenario("ramp", 0, seed=75))
    assert prompts.state.queues[0].start > 80.0
    assert _verdict("overloaded from 1:00 at 6.7 req/s", prompts) is True
    assert _verdict("rate above capacity from 1:00 at 6.7 req/s", prompts) is False
    assert _verdict("overloaded from 0:05 at 2.8 req/s", prompts) is False
    assert felt_onsets(prompts, 60.0)
    assert not felt_onsets(prompts, 5.0)


def test_a_queue_that_never_ends_is_an_overload_before_it_does_harm() -> None:
    endless = KnownTruth(scenario("free", 1, seed=92))
    assert endless.state.share_met() == 1.0
    assert endless.kept_at(endless.last_rate) is False
    assert _verdict("overloaded from 0:05 at 5.7 req/s", endless) is None


def test_a_queue_that_is_not_known_is_told_with_the_share_of_late_requests(healthy: KnownTruth) -> None:
    text = (
        "whether the engine keeps up is unknown: its queue is not known, and {}% of the requests missed the objectives"
    )
    missed = round(100 * (1 - healthy.state.share_met()))
    assert _verdict(text.format(missed), healthy) is True
    assert _verdict(text.format(missed + 20), healthy) is False


def test_a_shorter_overload_of_engine_or_network_needs_no_queue_in_the_engine() -> None:
    thin = KnownTruth(scenario("thin-network", 1, seed=86))
    assert _verdict("a shorter overload, for 12 s: engine or network overloaded", thin) is None
    assert _verdict("a shorter overload, for 12 s: overloaded", thin) is False


def test_an_inferred_batch_limit_is_that_of_the_engine(batch: KnownTruth) -> None:
    limit, at = batch.scenario.plan.spec.batch_limit, batch.state.queues[0].start + 5.0
    text = "the engine runs at most {0} at once at 5.0 req/s while requests wait: a batch limit of about {0}"
    assert _verdict(text.format(limit), batch, at=at) is True
    assert _verdict(text.format(2 * limit), batch, at=at) is False


def test_requests_without_a_first_token_are_counted(batch: KnownTruth) -> None:
    state = batch.state
    peak, at = int(state.unstarted.max()), float(state.times[state.unstarted.argmax()])
    clock = f"{int(at) // 60}:{int(at) % 60:02}"
    assert _verdict(f"up to {peak} requests without a first token, at {clock}", batch) is True
    assert _verdict(f"up to {3 * peak} requests without a first token, at {clock}", batch) is False
    assert _verdict("few requests wait for their first token any more", batch, at=at) is False
    assert _verdict("few requests wait for their first token any more", batch, at=state.queues[-1].until + 3.0) is True
    flying = int(state.in_flight[state.within(at, at + 0.1)][0])
    assert _verdict(f"requests in flight grow from 1 to {flying} at {clock}", batch) is True
    assert _verdict(f"requests in flight grow from 1 to {4 * flying} at {clock}", batch) is False


def test_a_held_load_is_told_with_its_limit(held: KnownTruth, healthy: KnownTruth) -> None:
    limit, most = held.state.run.stages[-1].max_concurrency, int(held.state.held_back.max())
    text = "up to {} requests queued at the client by its limit of {} in flight"
    assert _verdict(text.format(most, limit), held) is True
    assert _verdict(text.format(2 * most + 10, limit), held) is False
    assert _verdict(text.format(most, 99), held) is False
    assert _verdict("the engine was offered no more than that limit", held) is True
    assert _verdict("the engine was offered no more than that limit", healthy) is False
    assert _verdict("try a higher --max-concurrency, or a lower rate", healthy) is False


def test_the_seconds_of_a_throttle_are_checked(healthy: KnownTruth) -> None:
    truth = KnownTruth(scenario("throttled", 0, seed=SEED))
    assert truth.scenario.plan.gpus is not None
    seconds = truth.state.run.ticks[-1].end - truth.scenario.plan.gpus.throttle_from
    text = "the GPU's clocks are throttled for {:.0f} s: the figures are those of a slower GPU"
    assert _verdict(text.format(seconds), truth) is True
    assert _verdict(text.format(0.3 * seconds), truth) is False
    assert _verdict(text.format(seconds), healthy) is False


def test_what_was_left_and_completed_is_counted(batch: KnownTruth) -> None:
    assert batch.left == 0
    assert _verdict("the engine completed the load", batch) is True
    assert _verdict("40 cancelled unserved", batch) is False
