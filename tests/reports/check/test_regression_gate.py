"""Limits judged on differences whose error is known."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.comparison.compared_metrics import Scale
from servetop.analysis.comparison.comparison import Comparison
from servetop.analysis.comparison.difference import Difference
from servetop.reports.check.regression_gate import RegressionGate, judge_regressions, same_load
from servetop.reports.check.regression_limit import parse_regression_limit
from tests.reports.check.gates_for_tests import LOAD, comparison, differing, measured, stage


def judged(compared: Comparison, *limits: str, loads: dict[int, StageLoad] | None = None) -> tuple[RegressionGate, ...]:
    return judge_regressions(compared, [parse_regression_limit(each) for each in limits], loads=loads or {0: LOAD})


def outcome(limit: str, difference: Difference) -> CheckOutcome:
    key = limit.partition("=")[0]
    return judged(comparison(**{key: difference}), limit)[0].outcome


@pytest.mark.parametrize(
    ("limit", "value", "error", "expected"),
    [
        ("output_throughput=2%", -0.005, 0.005, CheckOutcome.KEPT),
        ("output_throughput=2%", +0.300, 0.005, CheckOutcome.KEPT),
        ("output_throughput=2%", -0.040, 0.005, CheckOutcome.BROKEN),
        ("output_throughput=2%", -0.015, 0.005, CheckOutcome.CANNOT_TELL),
        ("p99_ttft_ms=10%", +0.050, 0.010, CheckOutcome.KEPT),
        ("p99_ttft_ms=10%", -0.500, 0.010, CheckOutcome.KEPT),
        ("p99_ttft_ms=10%", +0.200, 0.010, CheckOutcome.BROKEN),
        ("p99_ttft_ms=10%", +0.110, 0.010, CheckOutcome.CANNOT_TELL),
        ("p99_ttft_ms=10ms", +0.050, 0.010, CheckOutcome.KEPT),
        ("p99_ttft_ms=2ms", +0.050, 0.010, CheckOutcome.BROKEN),
        ("p99_ttft_ms=10%", +0.000, math.inf, CheckOutcome.CANNOT_TELL),
    ],
)
def test_a_limit_is_kept_exceeded_or_cannot_be_told(
    limit: str, value: float, error: float, expected: CheckOutcome
) -> None:
    assert outcome(limit, differing(value, error)) is expected


def test_a_gate_is_kept_exactly_if_the_printed_interval_is_within_the_limit() -> None:
    (gate,) = judged(comparison(p99_ttft_ms=differing(0.05, 0.01)), "p99_ttft_ms=10%")
    assert gate.largest_loss == pytest.approx(1.05 * math.exp(1.96 * 0.01) - 1, rel=1e-4)
    limits = [f"p99_ttft_ms={gate.largest_loss * 100 + change:.6f}%" for change in (0.001, -0.001)]
    assert [outcome(limit, differing(0.05, 0.01)) for limit in limits] == [CheckOutcome.KEPT, CheckOutcome.CANNOT_TELL]


def test_identical_runs_keep_even_a_limit_of_zero() -> None:
    assert outcome("output_throughput=0%", differing(0.0, 0.0)) is CheckOutcome.KEPT


def test_more_gates_need_stronger_evidence_of_a_regression() -> None:
    """A loss two standard errors beyond the limit is a regression of one gate, but not of one of ten."""
    loss = math.expm1(math.log1p(0.10) + 2.0 * 0.01)
    assert outcome("p99_ttft_ms=10%", differing(loss, 0.01)) is CheckOutcome.BROKEN
    keys = [f"{statistic}_{latency}_ms" for latency in ("ttft", "tpot", "e2el") for statistic in ("mean", "p50", "p90")]
    compared = comparison(p99_ttft_ms=differing(loss, 0.01), **{key: differing(0.1, 0.01) for key in keys})
    gates = judged(compared, *(f"{key}=10%" for key in ("p99_ttft_ms", *keys)))
    assert gates[0].outcome is CheckOutcome.CANNOT_TELL


def test_a_loss_at_the_limit_is_seldom_called_kept_or_a_regression() -> None:
    """The stated error rates, on normal estimates of a true loss of exactly the limit."""
    draw, count, error = random.Random(11), 2000, 0.03
    centres = [draw.gauss(math.log1p(0.10), error) for _ in range(count)]
    outcomes = [outcome("p99_ttft_ms=10%", differing(math.expm1(centre), error)) for centre in centres]
    assert 0.015 < outcomes.count(CheckOutcome.KEPT) / count < 0.035
    assert 0.035 < outcomes.count(CheckOutcome.BROKEN) / count < 0.065


def test_the_cost_of_telling_shrinks_with_the_limit_and_the_error() -> None:
    costs = {
        (limit, error): judged(comparison(p99_ttft_ms=differing(0.0, error)), f"p99_ttft_ms={limit}%")[0].needs
        for limit, error in ((5, 0.05), (5, 0.1), (10, 0.1))
    }
    seconds = {key: 0.0 if cost is None else cost.seconds for key, cost in costs.items()}
    assert 0 < seconds[5, 0.05] < seconds[5, 0.1]
    assert 0 < seconds[10, 0.1] < seconds[5, 0.1]


def test_a_precise_loss_at_the_limit_has_no_cost() -> None:
    (gate,) = judged(comparison(p99_ttft_ms=differing(0.1, 0.005)), "p99_ttft_ms=10%")
    assert (gate.outcome, gate.needs, gate.note) == (
        CheckOutcome.CANNOT_TELL,
        None,
        "the loss is too close to the limit",
    )


def test_a_percentage_of_a_baseline_of_zero_cannot_be_told() -> None:
    (gate,) = judged(
        comparison(preemptions_per_request=differing(0.2, 0.2, a=0.0, scale=Scale.ABSOLUTE)),
        "preemptions_per_request=10%",
    )
    assert (gate.outcome, gate.note) == (CheckOutcome.CANNOT_TELL, "the baseline is 0: give the limit in /req")


def test_what_was_not_measured_cannot_be_told() -> None:
    only_b = Comparison(stages=(stage(measured("mean_ttft_ms", None, note="not measured in the baseline")),))
    assert judged(only_b, "mean_ttft_ms=5%")[0].note == "not measured in the baseline"
    assert judged(only_b, "p99_ttft_ms=5%")[0].note == "not measured, or of too few requests"
    assert {each.outcome for each in judged(only_b, "mean_ttft_ms=5%", "p99_ttft_ms=5%")} == {CheckOutcome.CANNOT_TELL}


def test_a_limit_of_one_stage_is_for_its_load_only() -> None:
    other = StageLoad(request_rate=16.0)
    metric = measured("p99_ttft_ms", differing(0.0, 0.01))
    compared = Comparison(stages=(stage(metric), stage(metric, load=other)))
    loads = {1: LOAD, 2: other, 3: StageLoad(request_rate=99.0)}
    assert [each.load for each in judged(compared, "p99_ttft_ms=10%", loads=loads)] == [LOAD, other]
    assert [each.load for each in judged(compared, "stages[2].p99_ttft_ms=10%", loads=loads)] == [other]
    (missing,) = judged(compared, "stages[3].p99_ttft_ms=10%", loads=loads)
    assert (missing.outcome, missing.note) == (CheckOutcome.CANNOT_TELL, "the baseline has no stage with this load")


def test_figures_that_cannot_be_believed_are_not_judged() -> None:
    limits = [parse_regression_limit("p99_ttft_ms=10%")]
    compared = comparison(p99_ttft_ms=differing(0.5, 0.01))
    (gate,) = judge_regressions(compared, limits, loads={0: LOAD}, obstacle=lambda load, limit: f"{load.label}: late")
    assert (gate.outcome, gate.note, gate.needs) == (CheckOutcome.CANNOT_TELL, "8 req/s: late", None)


@pytest.mark.parametrize(
    ("seconds", "requests", "comparable"),
    [((60, 60), (480, 240), True), ((60, 120), (480, 480), True), ((60, 120), (480, 960), False)],
)
def test_stages_with_a_drift_have_to_be_equally_long(
    seconds: tuple[float, float], requests: tuple[int, int], comparable: bool
) -> None:
    metric = measured("p99_ttft_ms", differing(0.0, 0.01))
    drifting = stage(metric, seconds=seconds, requests=requests, unsteady="in flight grows")
    (gate,) = judged(Comparison(stages=(drifting,)), "p99_ttft_ms=10%")
    assert (gate.outcome is CheckOutcome.KEPT) == comparable
    (steady,) = judged(Comparison(stages=(replace(drifting, unsteady=""),)), "p99_ttft_ms=10%")
    assert steady.outcome is CheckOutcome.KEPT


def test_a_gate_on_too_short_runs_cannot_be_told_and_says_what_to_measure() -> None:
    loss = measured("p99_ttft_ms", differing(0.05, 0.2))
    short = replace(stage(loss, seconds=(9.9, 10.0), requests=(174, 175)), needed_seconds=40.0)
    (gate,) = judged(Comparison(stages=(short,)), "p99_ttft_ms=10%")
    assert (gate.outcome, gate.needs) == (CheckOutcome.CANNOT_TELL, None)
    assert gate.note == "too short (9.9 s and 174 requests): measure 60 s or more of each, or use run-pairs"


def test_a_gate_on_a_stage_that_is_not_steady_asks_for_pairs_and_not_for_hours() -> None:
    drifting = stage(measured("p99_ttft_ms", differing(0.05, 0.2)), unsteady="in flight grows")
    (gate,) = judged(Comparison(stages=(drifting,)), "p99_ttft_ms=10%")
    assert (gate.outcome, gate.needs) == (CheckOutcome.CANNOT_TELL, None)
    assert gate.note == "not steady (in flight grows): use run-pairs"


def test_a_part_of_a_ramp_has_the_load_of_its_stage() -> None:
    ramp = StageLoad(request_rate=20.0, ramp_from=4.0)
    parts = [StageLoad(request_rate=8.0, ramp_from=4.0), StageLoad(request_rate=24.0, ramp_from=20.0), LOAD]
    assert [same_load(part, ramp) for part in parts] == [True, False, False]
    assert same_load(LOAD, replace(LOAD, max_num_seqs=64))
    assert not same_load(replace(LOAD, max_num_seqs=32), replace(LOAD, max_num_seqs=64))
