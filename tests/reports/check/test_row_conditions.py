"""Conditions that end a row of a sweep, on the figures of its cells."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from servetop.analysis.summary.summary_types import StageSummary
from servetop.core.errors import UsageError
from servetop.reports.check.row_conditions import LEAST_SECONDS, parse_row_condition, row_end
from tests.cli.summaries import TRUST, stage

OBJECTIVES = {"ttft": 0.5}
DOUBTED = dataclasses.replace(TRUST, verdict="suspect", reasons=("the engine counts other tokens",))


def end(text: str, *stages: StageSummary) -> str:
    return row_end(stages, [parse_row_condition(text, objectives=True, price=True)], OBJECTIVES)


def cell(**fields: Any) -> StageSummary:
    """Every latency is 5 ms; 4 of 5 requests completed, 3 within the objectives."""
    known: dict[str, Any] = {"completed": 4, "failed": 1, "request_goodput": 1.5, "duration": 2.0}
    return stage("24 req/s", **known | fields)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("p99_ttft_ms>4", "p99 TTFT 5 ms > 4 ms at 24 req/s"),
        ("mean_client_queue_time_ms >= 5", "mean client_queue_time 5 ms >= 5 ms at 24 req/s"),
        ("failed>0", "failed 1 > 0 at 24 req/s"),
        ("goodput<95%", "goodput 60 % < 95 % at 24 req/s"),
        (" goodput <= 60.0 % ", "goodput 60 % <= 60 % at 24 req/s"),
    ],
)
def test_a_cell_that_meets_a_condition_ends_its_row(text: str, reason: str) -> None:
    assert end(text, cell()) == reason


@pytest.mark.parametrize("text", ["p99_ttft_ms>5", "failed>1", "goodput<60%", "trust", "server.preemptions>=0"])
def test_a_cell_that_does_not_or_has_no_such_figure_does_not(text: str) -> None:
    assert end(text, cell()) == ""
    assert end(text) == ""


def test_a_figure_is_told_from_its_limit() -> None:
    assert "p99 TTFT 5.00 ms" not in end("p99_ttft_ms>4.999", cell())
    assert end("p99_ttft_ms>4.96", cell()) == "p99 TTFT 5 ms > 4.96 ms at 24 req/s"


@pytest.mark.parametrize(
    ("fields", "ends"),
    [
        ({"completed": 10, "duration": LEAST_SECONDS}, True),
        ({"completed": 9, "duration": LEAST_SECONDS}, False),
        ({"completed": 10, "duration": LEAST_SECONDS - 0.1}, False),
        ({"completed": 10, "duration": LEAST_SECONDS, "trust": TRUST}, False),
    ],
)
def test_doubts_about_a_cell_end_its_row_only_if_it_is_long_enough(fields: dict[str, Any], ends: bool) -> None:
    reason = "trust suspect (the engine counts other tokens) at 24 req/s"
    assert end("trust", cell(**{"trust": DOUBTED} | fields)) == (reason if ends else "")


def test_more_than_half_of_the_repeats_have_to_meet_one_condition() -> None:
    bad, good = cell(failed=7), cell(failed=0)
    assert end("failed>0", bad, good, bad) == "failed 7 > 0 at 24 req/s"
    assert end("failed>0", bad, good) == ""
    conditions = [parse_row_condition(text, objectives=True) for text in ("failed>0", "failed<1")]
    assert row_end([bad, good], conditions, OBJECTIVES) == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p99_tfft_ms>500", "unknown summary key 'p99_tfft_ms': valid keys are p99_ttft_ms"),
        ("p99_ttft_ms", "is not a threshold: use KEY<=NUMBER"),
        ("p99_ttft_ms>", "is not a threshold: use KEY<=NUMBER"),
        ("p99_ttft_ms>fast", "'fast' is not a number"),
        ("goodput<95", "write a share in percent, as in goodput<95%"),
        ("goodput", "write a share in percent, as in goodput<95%"),
        ("trust<1", 'write "trust" alone'),
        ("stages[2].failed>0", "leave out stages[…]"),
        ("goodput<95%", 'needs objectives: add goodput = ["ttft:500"]'),
        ("cost.per_request>1", "needs what the server costs: add price"),
    ],
)
def test_a_condition_that_cannot_be_judged_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"^until: ") as refused:
        parse_row_condition(text, objectives=False)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
