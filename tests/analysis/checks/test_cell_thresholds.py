"""Cells of a sweep against their thresholds; every latency is 5 ms."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from servetop.analysis.checks.cell_thresholds import judge_cells, parse_cell_thresholds
from servetop.analysis.checks.stage_figures import StageFigures
from servetop.analysis.checks.thresholds import parse_cell_threshold
from servetop.analysis.summary.summary_types import StageSummary
from servetop.analysis.sweep.cell_checks import CellChecks, CellOutcome
from servetop.core.config import RunConfig
from servetop.core.errors import UsageError
from tests.cli.summaries import TRUST, stage

KEPT, MISSED, OPEN = CellOutcome.KEPT, CellOutcome.MISSED, CellOutcome.NOT_DECIDED


def cell(number: int = 0, *, rate: float = 8.0, completed: int = 400, **changes: Any) -> StageSummary:
    found = stage(f"{rate:g} req/s", completed=completed, num_prompts=completed)
    return dataclasses.replace(found, stage=number, request_rate=rate, **changes)


def figures(each: StageSummary, **changes: Any) -> StageFigures:
    count = each.measured.requests.completed
    known = StageFigures(
        stage=each.stage,
        label=each.label,
        requests=count,
        completed=count,
        failed=0,
        compared_completed=count,
        trust=TRUST,
    )
    return dataclasses.replace(known, **changes)


def judged(*stages: StageSummary, by: str = "p99_ttft_ms<=5", **changes: Any) -> CellChecks:
    thresholds = [parse_cell_threshold(text) for text in by.split(", ")]
    return judge_cells(stages, thresholds, [figures(each, **changes) for each in stages])


@pytest.mark.parametrize(
    ("by", "outcome", "text"),
    [
        ("p99_ttft_ms<=5", KEPT, "p99 TTFT is 5 ms"),
        ("p99_ttft_ms<5", MISSED, "p99 TTFT is 5 ms, must be < 5 ms"),
        ("failed>0", MISSED, "failed is 0, must be > 0"),
        ("energy.joules<=1", MISSED, "energy.joules is not measured, must be ≤ 1"),
    ],
)
def test_a_cell_keeps_or_misses_a_threshold(by: str, outcome: CellOutcome, text: str) -> None:
    (found,) = judged(cell(), by=by).cells
    assert (found.outcome, found.thresholds[0].text) == (outcome, text)


@pytest.mark.parametrize(
    ("by", "completed", "outcome"),
    [
        ("p99_ttft_ms<=1", 367, OPEN),
        ("p99_ttft_ms<=1", 368, MISSED),
        ("p90_ttft_ms<=9", 35, OPEN),
        ("p90_ttft_ms<=9", 36, KEPT),
        ("failed<=0", 1, KEPT),
    ],
)
def test_a_percentile_of_too_few_requests_is_not_decided_whatever_it_is(
    by: str, completed: int, outcome: CellOutcome
) -> None:
    assert judged(cell(completed=completed), by=by).cells[0].outcome is outcome


def test_a_figure_of_a_broken_rule_is_not_decided() -> None:
    trust = dataclasses.replace(TRUST, verdict="client-bound", reasons=("sent late",))
    (found,) = judged(cell(), by="mean_ttft_ms<=1, completed>=1", trust=trust).cells
    assert [each.outcome for each in found.thresholds] == [OPEN, KEPT]
    assert "client-bound is broken: the client was the bottleneck" in found.thresholds[0].text


def test_repeats_are_one_cell_with_the_mean_of_their_figures() -> None:
    repeats = [cell(0, completed=400), cell(3, completed=500, repeat=1)]
    (found,) = judged(*repeats, cell(4, completed=1, steered="rate 8 to 9 req/s"), by="completed<=450").cells
    assert (found.stages, found.thresholds[0].value, found.outcome) == ((0, 3), 450.0, KEPT)


def test_a_cell_that_was_not_measured_as_a_whole_is_not_decided() -> None:
    failed = cell(0, rate=4.0, finished=False, outcome="failed", failure="the engine did not start")
    short = cell(1, rate=6.0, finished=False, outcome="cut-short")
    earlier = cell(2, rate=8.0, finished=False, outcome="cut-short", counted=False)
    found = judged(failed, short, earlier, cell(3, rate=8.0))
    assert [(each.outcome, each.thresholds[0].text) for each in found.cells] == [
        (OPEN, "failed: the engine did not start"),
        (OPEN, "cut short"),
        (KEPT, "p99 TTFT is 5 ms"),
    ]


def test_a_missed_threshold_comes_before_one_that_is_not_decided() -> None:
    (found,) = judged(cell(completed=10), by="p99_ttft_ms<=1, completed>=20, failed<=0").cells
    assert [each.outcome for each in found.thresholds] == [OPEN, MISSED, KEPT]
    assert (found.outcome, found.text) == (MISSED, "8 req/s: completed is 10, must be ≥ 20")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p99_tfft_ms<=500", "unknown summary key 'p99_tfft_ms': valid keys are p99_ttft_ms"),
        ("p99_ttft<=500", "unknown summary key 'p99_ttft': valid keys are p99_ttft_ms"),
        ("p99_ttft_ms<=500ms", "'500ms' is not a number, as in p99_ttft_ms<=500: the unit is in the key"),
        ("stages[*].failed<=0", "leave out stages[…]"),
        ("cost.per_request<=1", "needs what the server costs: add price"),
    ],
)
def test_a_threshold_without_a_figure_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"^cell_threshold: ") as refused:
        parse_cell_thresholds(RunConfig(cell_thresholds=(text,)))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_cost_may_be_limited_where_there_is_a_price() -> None:
    (found,) = parse_cell_thresholds(RunConfig(cell_thresholds=("cost.per_request<=1",), prices=("2.5/h",)))
    assert found.key == "cost.per_request"
