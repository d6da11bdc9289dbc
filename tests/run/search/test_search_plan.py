"""Searches of simulated engines in virtual time: their loads, their answers, and that evidence decides everything."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from servetop.core.config import WorkloadConfig
from servetop.run.search.search_answer import QUEUE, AnswerKind, TierAnswer
from servetop.run.search.search_evidence import Evidence, LoadObjective, Probe, Purpose, SearchLimits
from servetop.run.search.search_plan import SearchPlan
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.searched_server import SearchedServer, searched
from tests.run.search.made_evidence import Kept, evidence_of

TTFT = LoadObjective(text="p95_ttft<500ms", metric="ttft", limit=0.5, share=0.95)
LIMITS = SearchLimits(low=0.1, high=1000.0, budget=600.0)
BATCH_OF_32 = ConstantRates(
    model="llama-2-7b",
    gpu="a100-40",
    engine_profile="vllm-current",
    settings={"max_model_len": 4096, "max_num_seqs": 32},
    workload=WorkloadConfig(input_len=128, output_len=128),
    objective=0.5,
)
"""Sustains 13.1 req/s with 95 % of TTFT within 500 ms, in runs of hours."""


def search(
    limits: SearchLimits = LIMITS, *, objectives: tuple[LoadObjective, ...] = (TTFT,), seed: int = 1
) -> tuple[Evidence, tuple[TierAnswer, ...]]:
    plan = SearchPlan([[index] for index in range(len(objectives))], objectives, limits)
    evidence = searched(SearchedServer(BATCH_OF_32, seed=seed, concurrency=limits.concurrency), plan, objectives)
    return evidence, plan.answers(evidence)


def test_the_answer_of_a_batch_bound_engine_is_in_its_interval() -> None:
    evidence, (answer,) = search()
    assert answer.kind in (AnswerKind.FOUND, AnswerKind.WIDE)
    assert answer.low < 13.1 < answer.high
    assert answer.load == pytest.approx(13.1, rel=0.15)
    assert answer.binding == TTFT.text
    assert evidence.probes[-1].end <= 600.0


def test_the_last_load_confirms_the_lower_end_as_known_before_it() -> None:
    evidence, (answer,) = search()
    *measured, last = evidence.probes
    plan = SearchPlan([[0]], [TTFT], LIMITS)
    (before,) = plan.answers(replace(evidence, probes=tuple(measured)))
    assert last.purpose is Purpose.CONFIRM
    assert last.load == pytest.approx(before.low, rel=0.02)  # requests that were in flight then have ended since
    assert answer.low != before.low, "the confirmation is evidence"
    assert plan.next(evidence) is None


CALM = (
    Kept(5.0, 30.0),
    Kept(10.0, 30.0),
    Kept(12.0, 60.0),
    Kept(16.0, 40.0, missed=0.2),
    Kept(13.0, 60.0, missed=0.03),
)


def test_a_confirmation_that_contradicts_the_answer_lowers_it() -> None:
    plan = SearchPlan([[0]], [TTFT], LIMITS)
    ((before,), (kept,), (missed,)) = (
        plan.answers(evidence_of(*CALM, *last))
        for last in ((), [Kept(12.0, 40.0, purpose=Purpose.CONFIRM)], [Kept(12.0, 40.0, 0.3, purpose=Purpose.CONFIRM)])
    )
    assert missed.low < 0.95 * before.low
    assert missed.load is not None
    assert before.load is not None
    assert missed.load < before.load
    assert kept.low >= missed.low


def test_a_search_goes_on_after_a_confirmation_that_left_the_answer_wide() -> None:
    evidence = evidence_of(
        *CALM, Kept(12.0, 40.0, 0.3, purpose=Purpose.CONFIRM), Kept(0.5, 2.0, purpose=Purpose.RECOVER)
    )
    evidence = replace(evidence, probes=evidence.probes[:-1])
    step = SearchPlan([[0]], [TTFT], LIMITS).next(evidence)
    assert step is not None
    assert step.purpose is Purpose.MEASURE
    assert SearchPlan([[0]], [TTFT], replace(LIMITS, budget=evidence.seconds + 10.0)).next(evidence) is None


@pytest.mark.parametrize("budget", [12.0, 60.0, 90.0, 150.0])
def test_a_search_ends_within_its_budget(budget: float) -> None:
    evidence, _ = search(replace(LIMITS, low=4.0, budget=budget), seed=2)
    assert evidence.probes[-1].end <= budget


OVERLOAD = (Kept(5.0, 30.0), Kept(10.0, 30.0), Kept(40.0, 20.0, missed=1.0, growth=0.9))


def test_the_end_of_the_budget_ends_a_recovery() -> None:
    recovering = evidence_of(*OVERLOAD, Kept(4.0, 5.0, latency=20.0, purpose=Purpose.RECOVER))
    for left, goes_on in ((40.0, True), (9.0, True), (7.0, False), (-1.0, False)):
        step = SearchPlan([[0]], [TTFT], replace(LIMITS, budget=recovering.seconds + left)).next(recovering)
        assert (step is not None) == goes_on, left
        assert step is None or (step.purpose is Purpose.RECOVER and step.seconds <= left)


def test_time_is_left_to_serve_the_backlog_and_to_confirm() -> None:
    rising = evidence_of(*OVERLOAD[:2], Kept(40.0, 5.0, missed=1.0, growth=0.9))
    ample, short = (
        SearchPlan([[0]], [TTFT], replace(LIMITS, budget=rising.seconds + left)).next(rising) for left in (500.0, 30.0)
    )
    assert ample is not None
    assert short is not None
    assert short.purpose is Purpose.RECOVER


def test_the_confirmation_of_a_slow_server_takes_a_quarter_of_the_budget_at_most() -> None:
    slow = evidence_of(Kept(5.0, 40.0, latency=14.0), Kept(0.2, 20.0))
    slow = replace(slow, probes=slow.probes[:1])
    step = SearchPlan([[0]], [TTFT], replace(LIMITS, budget=68.0)).next(slow)
    assert step is not None
    assert (step.purpose, step.seconds) == (Purpose.CONFIRM, 17.0)


def test_a_confirmation_that_was_cut_short_is_continued_once() -> None:
    evidence, _ = search()
    plan, last = SearchPlan([[0]], [TTFT], LIMITS), evidence.probes[-1]
    cut = replace(last, end=last.begin + 1.0)
    step = plan.next(replace(evidence, probes=(*evidence.probes[:-1], cut)))
    assert step is not None
    assert (step.load, step.purpose) == (last.load, Purpose.CONFIRM)
    assert step.seconds == pytest.approx(last.end - last.begin - 1.0, rel=0.1)
    rest = replace(last, begin=cut.end, end=cut.end + step.seconds)
    assert plan.next(replace(evidence, probes=(*evidence.probes[:-1], cut, rest))) is None


def test_a_search_that_was_interrupted_goes_on_where_it_was() -> None:
    server, plan = SearchedServer(BATCH_OF_32, seed=3), SearchPlan([[0]], [TTFT], LIMITS)
    probes: list[Probe] = []
    for _ in range(12):
        step = plan.next(server.evidence(probes, [TTFT]))
        assert step is not None
        probes.append(replace(server.keep(step.load, step.seconds), purpose=step.purpose))
    again = SearchPlan([[0]], [TTFT], LIMITS)
    evidence = server.evidence(probes, [TTFT])
    assert again.next(evidence) == plan.next(evidence)
    assert again.answers(evidence) == plan.answers(evidence)


def test_an_overload_is_left_at_once() -> None:
    evidence, _ = search()
    loads = [(probe.load, probe.end - probe.begin) for probe in evidence.probes]
    highest = max(loads)[0]
    assert highest < 26.0
    assert sum(seconds for load, seconds in loads if load == highest) <= 20.0


def test_the_backlog_of_an_overload_is_served_before_the_next_load() -> None:
    overloaded = (Kept(5.0, 30.0), Kept(10.0, 30.0), Kept(40.0, 20.0, missed=1.0, growth=0.9))
    plan = SearchPlan([[0]], [TTFT], LIMITS)
    step = plan.next(evidence_of(*overloaded))
    assert step is not None
    assert step.purpose is Purpose.RECOVER
    assert step.load < 10.0
    after = plan.next(evidence_of(*overloaded, Kept(step.load, 60.0, purpose=Purpose.RECOVER)))
    assert after is not None
    assert (after.purpose, 10.0 < after.load < 45.0) == (Purpose.MEASURE, True)


def test_a_range_below_or_above_the_answer_says_so() -> None:
    _, (above,) = search(replace(LIMITS, low=1.0, high=4.0))
    assert (above.kind, above.high) == (AnswerKind.ABOVE, math.inf)
    assert (1 - LIMITS.precision) * 4.0 <= above.low <= 4.0
    _, (below,) = search(replace(LIMITS, low=30.0))
    assert (below.kind, below.high, below.binding) == (AnswerKind.BELOW, 30.0, TTFT.text)


def test_requests_in_flight_are_searched_in_whole_numbers() -> None:
    evidence, (answer,) = search(replace(LIMITS, low=1.0, concurrency=True))
    assert all(probe.load == round(probe.load) for probe in evidence.probes)
    assert answer.load in (31.0, 32.0, 33.0)  # the batch limit


def test_a_looser_objective_allows_a_larger_load() -> None:
    strict, loose = replace(TTFT, text="p99_ttft<500ms", share=0.99), replace(TTFT, text="p50_ttft<500ms", share=0.5)
    _, (first, second) = search(objectives=(strict, loose))
    assert first.load is not None
    assert second.load is not None
    assert first.load < second.load


def test_a_queue_that_grows_bounds_the_load_where_no_limit_is_missed() -> None:
    calm = [Kept(load, 30.0) for load in (5.0, 10.0, 15.0)]
    evidence = evidence_of(*calm, Kept(20.0, 130.0, growth=0.5))
    plan = SearchPlan([[0]], [TTFT], LIMITS)
    (answer,) = plan.answers(evidence)
    assert answer.binding == QUEUE
    assert answer.high < 21.0


def test_while_no_load_was_too_high_the_answer_has_no_upper_end() -> None:
    (answer,) = SearchPlan([[0]], [TTFT], LIMITS).answers(evidence_of(Kept(5.0, 30.0), Kept(10.0, 60.0)))
    assert (answer.kind, answer.high, answer.minutes_left) == (AnswerKind.WIDE, math.inf, None)
    assert 5.0 < answer.low < 20.0


def test_without_evidence_nothing_is_claimed() -> None:
    (answer,) = SearchPlan([[0]], [TTFT], LIMITS).answers(evidence_of(Kept(1.0, 5.0, purpose=Purpose.RECOVER)))
    assert (answer.kind, answer.load, answer.low, answer.high) == (AnswerKind.WIDE, None, 0.0, math.inf)


def test_a_prior_only_moves_the_first_load() -> None:
    plan = SearchPlan([[0]], [TTFT], replace(LIMITS, prior=40.0))
    first = plan.next(replace(evidence_of(Kept(1.0, 5.0)), probes=()))
    assert first is not None
    assert first.load == 20.0


@pytest.mark.parametrize(("purpose", "load"), [(Purpose.MEASURE, 4.0), (Purpose.RECOVER, 8.0)])
def test_a_server_that_restarted_begins_with_half_of_its_load(purpose: Purpose, load: float) -> None:
    earlier = (Probe(load=8.0, begin=0.0, end=20.0, purpose=purpose),)
    plan = SearchPlan([[0]], [TTFT], LIMITS)
    nothing = replace(evidence_of(Kept(8.0, 5.0)), probes=(), earlier=earlier)
    rest = replace(evidence_of(Kept(8.0, 5.0, purpose=purpose)), earlier=earlier)
    for evidence in (nothing, rest):
        step = plan.next(evidence)
        assert step is not None
        assert (step.load, step.purpose, step.reason) == (
            load,
            Purpose.MEASURE,
            "the first load since the server restarted",
        )
    after = plan.next(replace(evidence_of(Kept(8.0, 5.0), Kept(4.0, 8.0)), earlier=earlier))
    assert after is not None
    assert after.reason != "the first load since the server restarted"


def test_a_restart_at_the_least_load_continues_with_it() -> None:
    earlier = (Probe(load=4.0, begin=0.0, end=20.0),)
    step = SearchPlan([[0]], [TTFT], replace(LIMITS, low=4.0)).next(
        replace(evidence_of(Kept(4.0, 30.0)), earlier=earlier)
    )
    assert step is not None
    assert step.load > 4.0


def test_a_restart_does_not_extend_the_budget() -> None:
    earlier = (Probe(load=8.0, begin=-600.0, end=0.0),)
    assert SearchPlan([[0]], [TTFT], LIMITS).next(replace(evidence_of(Kept(8.0, 5.0)), earlier=earlier)) is None
