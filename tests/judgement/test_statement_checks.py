"""Statements about runs whose truth is known, right and wrong ones."""

from __future__ import annotations

import pytest

from tests.judgement.kinds import scenario
from tests.judgement.known_truth import KnownTruth
from tests.judgement.live_checks import near
from tests.judgement.scenario import Cause
from tests.judgement.statement_checks import check
from tests.judgement.statements import statements_of

SEED = 22


@pytest.fixture(scope="module")
def batch() -> KnownTruth:
    """A batch overload, with its queue from 0:20 to 1:35."""
    return KnownTruth(scenario("batch", 4, seed=SEED))


@pytest.fixture(scope="module")
def healthy() -> KnownTruth:
    return KnownTruth(scenario("healthy", 0, seed=SEED))


def _verdict(text: str, truth: KnownTruth, *, at: float | None = None, live: bool = False) -> bool | None:
    (statement,) = statements_of(text, at=at, live=live)
    return check(statement, truth)


def _onset(truth: KnownTruth) -> float:
    return truth.state.queues[0].start


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def test_the_cause_and_its_onset_are_checked(batch: KnownTruth) -> None:
    assert _verdict(f"batch-bound from {_clock(_onset(batch))}", batch) is True
    assert _verdict(f"batch-bound from {_clock(_onset(batch) + 25)}", batch) is False
    assert [_verdict(name, batch) for name in ("headroom", "KV-bound", "client-bound", "failing")] == [False] * 4


def test_a_healthy_run_has_no_cause(healthy: KnownTruth) -> None:
    assert _verdict("headroom", healthy) is True
    assert _verdict("rate above capacity from 0:10", healthy) is False
    assert _verdict("the engine kept up with the whole load", healthy) is True


def test_free_slots_are_false_in_a_full_batch(batch: KnownTruth, healthy: KnownTruth) -> None:
    assert _verdict("with free KV blocks and batch slots", batch) is False
    assert _verdict("with free KV blocks and batch slots", healthy) is not True


def test_rates_are_compared_with_those_that_the_engine_sustains(batch: KnownTruth) -> None:
    rate = batch.scenario.sustainable_rate
    assert rate is not None
    factors = {"≈": (0.5, 1.0, 1.7), "≥": (0.6, 1.3), "<": (0.6, 1.4)}
    said = {sign: [_verdict(f"sustainable {sign} {rate * each:.4g} req/s", batch) for each in factors[sign]]
            for sign in factors}  # fmt: skip
    assert said == {"≈": [False, True, False], "≥": [True, False], "<": [False, True]}


def test_the_end_of_a_queue_is_right_within_two_seconds(batch: KnownTruth) -> None:
    until = batch.state.queues[-1].until
    said = [_verdict("nothing waits any more", batch, at=until + late) for late in (-12.0, 1.0, 20.0)]
    assert said == [False, True, True]
    queued = int(batch.state.waiting.max())
    at = float(batch.state.times[batch.state.waiting.argmax()])
    assert _verdict(f"the queue grows, to {queued} requests at {_clock(at)}", batch) is True
    assert _verdict(f"the queue grows, to {3 * queued} requests at {_clock(at)}", batch) is False


def test_advice_that_cannot_help_is_false(batch: KnownTruth, healthy: KnownTruth) -> None:
    assert _verdict("try a higher rate", batch) is False
    assert _verdict("try a lower rate", healthy) is False
    limit = batch.scenario.plan.spec.batch_limit
    assert _verdict(f"try max_num_seqs {4 * limit}", batch) is True
    assert _verdict(f"try max_num_seqs {limit // 2}", batch) is False


def test_the_verdict_line_is_checked_at_its_moment(batch: KnownTruth) -> None:
    late = _onset(batch) + 15.0
    assert _verdict("headroom", batch, at=late, live=True) is False
    assert _verdict("headroom", batch, at=_onset(batch) - 5.0, live=True) is None
    assert _verdict("batch-bound", batch, at=late, live=True) is True
    assert _verdict("KV-bound", batch, at=late, live=True) is False
    waiting = int(batch.state.waiting[batch.state.within(late - 0.5, late)].mean())
    assert _verdict(f"{waiting} waiting", batch, at=late, live=True) is True
    assert _verdict(f"{10 * waiting + 50} waiting", batch, at=late, live=True) is False
    assert _verdict("nothing waits", batch, at=late, live=True) is False


def test_all_replicas_together_are_overloaded_by_the_truth_of_their_queues(batch: KnownTruth) -> None:
    assert batch.overloaded
    assert batch.names(Cause.BATCH) is True
    assert batch.kept_at(0.1) is True


@pytest.mark.parametrize(("said", "right"), [(75.0, True), (125.0, True), (74.0, False), (126.0, False)])
def test_figures_are_right_within_a_quarter(said: float, *, right: bool) -> None:
    assert near(said, 100.0) is right


def test_free_slots_of_a_growing_batch_are_those_of_its_whole_load(batch: KnownTruth) -> None:
    growing = KnownTruth(scenario("large-batch", 0, seed=SEED))
    assert growing.outgrown
    assert growing.state.queues == []
    for text in (
        "with free KV blocks and batch slots",
        "neither KV blocks nor the batch were full for most of the time",
    ):
        assert _verdict(text, growing) is True
        assert _verdict(text, batch) is False


@pytest.mark.parametrize(
    ("kind", "number", "seed", "right", "wrong"),
    [
        ("ramp", 1, 92, "KV-bound from 1:05 at 9.6 req/s", "KV-bound from 0:30 at 9.6 req/s"),
        ("client", 5, 90, "client-bound from 0:20 at 29.0 req/s", "client-bound from 0:50 at 29.0 req/s"),
        ("bursty", 4, 90, "batch-bound from 0:26 at 0.6 req/s", "batch-bound from 0:50 at 0.6 req/s"),
    ],
)
def test_an_onset_may_be_that_of_its_own_overload(kind: str, number: int, seed: int, right: str, wrong: str) -> None:
    """Preemptions after a pause, a load that is faster than the client, and the longest queue if none lasted."""
    truth = KnownTruth(scenario(kind, number, seed=seed))
    assert _verdict(right, truth) is not False
    assert _verdict(wrong, truth) is False


def test_a_single_request_that_missed_its_objective_does_not_make_a_queue_harmful() -> None:
    truth = KnownTruth(scenario("free", 10, seed=89))
    (queue,) = truth.state.queues
    assert truth.state.share_met(queue.start - 1.0, queue.until) < 0.95
    assert not truth.state.overloaded
    assert _verdict("the engine kept up with the whole load", truth) is not False
