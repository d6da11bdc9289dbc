"""Each rule on summaries at its limit and beyond it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.checks.stage_figures import StageFigures
from servetop.analysis.checks.stage_rules import RULES, Judged, requests_for_percentile
from servetop.analysis.summary.trust_metrics import NOT_IN_FILE
from servetop.analysis.trust.cache_check import CacheCheck
from tests.cli.summaries import TRUST

BROKEN, KEPT, UNKNOWN, NONE = (
    CheckOutcome.BROKEN,
    CheckOutcome.KEPT,
    CheckOutcome.CANNOT_TELL,
    CheckOutcome.NOT_APPLICABLE,
)


def judge(name: str, stage: StageFigures) -> Judged:
    (rule,) = [rule for rule in RULES if rule.name == name]
    return rule.judge(stage)


def figures(**fields: Any) -> StageFigures:
    known: dict[str, Any] = {"requests": 100, "completed": 100, "failed": 0, "compared_completed": 100, "trust": TRUST}
    return StageFigures(stage=0, label="", **known | fields)


def with_trust(*, completed: int = 100, **fields: Any) -> StageFigures:
    return figures(compared_completed=completed, trust=replace(TRUST, **fields))


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"verdict": "client-bound", "slip_p99_ms": 240.0, "reasons": ("slow",)}, BROKEN),
        ({"verdict": "ok", "slip_p99_ms": 3.0}, KEPT),
        ({"verdict": "suspect", "slip_p99_ms": 3.0}, KEPT),
        ({"verdict": "unknown"}, UNKNOWN),
    ],
)
def test_a_client_bound_stage_breaks_its_rule(fields: dict[str, Any], state: CheckOutcome) -> None:
    assert judge("client-bound", with_trust(**fields)).state is state


@pytest.mark.parametrize(
    ("completed", "failed", "state"), [(99, 1, KEPT), (98, 2, BROKEN), (0, 5, BROKEN), (0, 0, UNKNOWN)]
)
def test_more_than_one_percent_of_failures_breaks_its_rule(completed: int, failed: int, state: CheckOutcome) -> None:
    assert judge("failures", figures(completed=completed, failed=failed)).state is state


@pytest.mark.parametrize(
    ("error", "limit", "completed", "state"),
    [
        (0.05, 0.05, 9, KEPT),
        (-0.06, 0.05, 9, BROKEN),
        (-0.06, 0.10, 9, KEPT),
        (-0.90, 1.20, 9, NONE),
        (-1.00, 0.05, 0, NONE),
        (None, 0.05, 9, NONE),
    ],
)
def test_littles_law_has_the_limit_of_the_trust_meter(
    error: float | None, limit: float, completed: int, state: CheckOutcome
) -> None:
    summary = with_trust(completed=completed, littles_law_error=error, littles_law_limit=limit)
    assert judge("littles-law", summary).state is state


@pytest.mark.parametrize(("error", "state"), [(0.05, KEPT), (-0.051, BROKEN), (None, NONE)])
def test_the_engine_counts_the_same_tokens(error: float | None, state: CheckOutcome) -> None:
    assert judge("token-counts", with_trust(token_error=error)).state is state


@pytest.mark.parametrize(
    ("source", "error", "state"),
    [
        ("usage", None, KEPT),
        ("tokenizer", None, KEPT),
        ("chunks", None, BROKEN),
        ("chunks", 0.01, KEPT),
        ("estimate", 0.2, BROKEN),
        ("disputed", 0.01, BROKEN),
        (None, None, NONE),
    ],
)
def test_counted_events_need_an_engine_that_agrees(
    source: str | None, error: float | None, state: CheckOutcome
) -> None:
    assert judge("token-source", with_trust(token_source=source, token_error=error)).state is state


def test_an_imported_run_without_a_source_of_tokens_is_not_one_without_requests() -> None:
    found = judge("token-source", with_trust(token_source=None, slip_basis=NOT_IN_FILE))
    assert (found.state, "imported" in found.text) == (NONE, True)


@pytest.mark.parametrize(
    ("generating", "in_flight", "state"), [(10.9, 10.0, KEPT), (11.1, 10.0, BROKEN), (None, None, NONE)]
)
def test_tokens_need_requests_in_flight(generating: float | None, in_flight: float | None, state: CheckOutcome) -> None:
    assert judge("token-rate", figures(generating=generating, in_flight=in_flight)).state is state


@pytest.mark.parametrize(("completed", "state"), [(368, KEPT), (367, BROKEN), (0, NONE)])
def test_a_p99_needs_368_requests(completed: int, state: CheckOutcome) -> None:
    assert judge("p99-samples", figures(compared_completed=completed)).state is state
    assert 0.99 ** requests_for_percentile(99) <= 0.025 < 0.99 ** (requests_for_percentile(99) - 1)


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("in flight grows by 2.1 requests/s: the offered load is above what the engine serves", BROKEN),
        ("output tokens/s falls by 12% of its mean over the second half of the load", BROKEN),
        ("in flight or output tokens/s changed level: no half of the load was without a trend", BROKEN),
        ("the load was ramped or kept changing", NONE),
        ("the load lasted 8 s: at least 10 s are needed", UNKNOWN),
    ],
)
def test_a_trend_is_not_a_steady_state(reason: str, state: CheckOutcome) -> None:
    assert judge("steady", figures(unsteady=reason)).state is state
    assert judge("steady", figures(steady_seconds=15.0)).state is KEPT


@pytest.mark.parametrize(
    ("rate", "ideal", "promised", "state"),
    [
        (0.62, 0.60, "as-is", KEPT),
        (0.63, 0.60, "as-is", BROKEN),
        (0.10, 0.60, "as-is", KEPT),
        (0.10, 0.60, "warm", BROKEN),
        (0.90, math.nan, "as-is", NONE),
        (math.nan, 0.60, "as-is", NONE),
    ],
)
def test_the_cache_hits_as_often_as_the_workload_implies(
    rate: float, ideal: float, promised: str, state: CheckOutcome
) -> None:
    cache = CacheCheck(hit_rate=rate, ideal=ideal, promised=promised)
    assert judge("prefix-cache", figures(cache=cache)).state is state
