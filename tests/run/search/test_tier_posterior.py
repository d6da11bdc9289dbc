"""Objectives of a tier are judged each by its own figure, and the least of their answers is that of the tier."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.run.search.load_windows import LoadWindow, Trend, windows
from servetop.run.search.objective_text import parse_objective
from servetop.run.search.queue_windows import queue_windows
from servetop.run.search.search_answer import QUEUE, AnswerKind
from servetop.run.search.search_evidence import Evidence, SearchLimits
from servetop.run.search.tier_posterior import TierPosterior, is_clearly_missed, is_missed, tier_posterior
from servetop.run.search.window_mean import WindowMean
from tests.run.search.made_evidence import Kept, evidence_of
from tests.run.search.open_loops import LARGEST, OBJECTIVE, with_queue, without_queue

SHARE, MEAN = parse_objective("p90_ttft<1s"), parse_objective("mean_ttft<200ms")
LIMITS = SearchLimits(low=1.0, high=100.0, budget=600.0)


def window(*, missed: float = 0.0, mean: float | None = None, error: float = 0.05) -> LoadWindow:
    return LoadWindow(
        load=8.0, begin=0.0, seconds=20.0, counted=100.0, missed=missed, events=(), trend=Trend.SETTLED, in_flight=5.0,
        reached=5.0, latency=0.5, mean=None if mean is None else WindowMean(value=mean, error=error, freedom=7),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("missed", "expected", "clearly"), [(9.0, False, False), (12.0, True, False), (60.0, True, True)]
)
def test_a_share_is_missed_beyond_what_is_allowed(missed: float, expected: bool, clearly: bool) -> None:
    assert (is_missed(window(missed=missed), SHARE), is_clearly_missed(window(missed=missed), SHARE)) == (
        expected,
        clearly,
    )


@pytest.mark.parametrize(
    ("mean", "error", "expected", "clearly"),
    [
        (None, 0.05, False, False),
        (0.19, 0.05, False, False),
        (0.21, 0.05, True, False),
        (0.5, 0.05, True, True),
        (0.5, 0.5, True, False),
    ],
)
def test_a_mean_is_missed_beyond_its_limit(mean: float | None, error: float, expected: bool, clearly: bool) -> None:
    seen = window(mean=mean, missed=90.0, error=error)
    assert (is_missed(seen, MEAN), is_clearly_missed(seen, MEAN)) == (expected, clearly)


def of(evidence: Evidence, *, limits: SearchLimits = LIMITS) -> TierPosterior:
    """The tier of a share and a mean that have the same samples."""
    both = replace(
        evidence,
        counted=evidence.counted * 2,
        missed=evidence.missed * 2,
        sums=(0 * evidence.due, evidence.done - evidence.due),
    )
    views = [windows(both, 0), windows(both, 1)]
    return tier_posterior(
        [*views, queue_windows(views[0], longest=120.0)], [0, 1], [SHARE, MEAN], limits
    )  # fmt: skip


STEPS = [Kept(load, 40.0, latency=0.2 * (load / 20.0) ** 2) for load in (5.0, 10.0, 15.0, 18.0, 20.0, 22.0, 25.0)]


def test_the_least_answer_is_that_of_the_tier() -> None:
    tier = of(evidence_of(*STEPS, Kept(0.5, 5.0)))
    assert tier.text == ("p90_ttft<1s", "mean_ttft<200ms", QUEUE)
    low, high = tier.whole.interval
    assert low < 20.0 < high
    assert tier.parts[0].quantile(0.5) > 1.1 * high
    assert tier.width < 0.1
    assert tier.kind in (AnswerKind.FOUND, AnswerKind.WIDE)


def test_few_requests_tell_little_of_the_queue_beside_a_mean() -> None:
    evidence = evidence_of(Kept(2.0, 15.0), Kept(4.0, 15.0), Kept(3.0, 20.0), Kept(0.5, 5.0))
    alone = [windows(evidence, 0)]
    views = [*alone, queue_windows(alone[0], longest=120.0)]
    share = tier_posterior(views, [0], [SHARE], LIMITS).parts[-1]
    mean = tier_posterior(views, [0], [MEAN], LIMITS).parts[-1]
    assert mean.quantile(0.1) < share.quantile(0.1)


def test_a_closed_loop_has_no_queue() -> None:
    tier = of(evidence_of(*STEPS, Kept(0.5, 5.0)), limits=replace(LIMITS, concurrency=True))
    assert tier.text == ("p90_ttft<1s", "mean_ttft<200ms")


def test_latencies_without_a_queue_count_in_full_in_an_open_loop() -> None:
    seen = windows(without_queue(), 0)
    unknown = [replace(each, memory=None) for each in seen]
    measured, assumed = (
        tier_posterior([view, queue_windows(view, longest=120.0)], [0], [OBJECTIVE], LIMITS).whole.interval
        for view in (seen, unknown)
    )
    assert measured[0] < LARGEST < measured[1]
    assert measured[1] / measured[0] < 1.12
    assert assumed[1] / assumed[0] > 2.0


def test_latencies_of_a_queue_count_as_little_as_if_nothing_were_measured() -> None:
    seen = windows(with_queue(), 0)
    unknown = [replace(each, memory=None) for each in seen]
    measured, assumed = (
        tier_posterior([view, queue_windows(view, longest=120.0)], [0], [OBJECTIVE], LIMITS).whole.interval
        for view in (seen, unknown)
    )
    assert measured == assumed


@pytest.mark.parametrize(("low", "high", "kind"), [(1.0, 12.0, AnswerKind.ABOVE), (40.0, 90.0, AnswerKind.BELOW)])
def test_an_answer_beyond_the_loads_that_may_be_tried_says_so(low: float, high: float, kind: AnswerKind) -> None:
    assert of(evidence_of(*STEPS, Kept(0.5, 5.0)), limits=replace(LIMITS, low=low, high=high)).kind is kind
