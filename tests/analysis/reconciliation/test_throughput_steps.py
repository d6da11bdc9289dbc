"""Throughput follows the rate of an open loop, and Little's law in a closed one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from servetop.analysis.reconciliation.client_rows import ClientRows
from servetop.analysis.reconciliation.definitions import ReconciledMetric
from servetop.analysis.reconciliation.reconcile import Reconciliation, percent_of, reconcile
from servetop.analysis.reconciliation.waterfall import DifferenceWaterfall, ReconciledRun, StepKind
from servetop.core.events import RequestRecord, RequestStatus
from tests.analysis.reconciliation.synthetic_runs import PlantedRun, planted
from tests.run.audit.small_records import record


def closed_loop(
    slots: int, *, seed: int, e2el: float = 1.0, pause: float = 0.01, tool: str = "servetop"
) -> ReconciledRun:
    """Slots that send one request after another, each of about `e2el` seconds, with a pause between two."""
    random = np.random.default_rng(seed)
    requests: list[RequestRecord] = []
    for slot in range(slots):
        at = 0.1 * slot
        while at < 60:
            took = e2el * float(random.uniform(0.9, 1.1))
            requests.append(record(len(requests), sent=at, first=at + 0.1 * took, done=at + took))
            at += took + pause
    return ReconciledRun(tool=tool, rows=ClientRows.of(requests), closed=True, concurrency=slots)


def rate(result: Reconciliation, metric: ReconciledMetric = ReconciledMetric.REQUEST_THROUGHPUT) -> DifferenceWaterfall:
    return next(each for each in result.waterfalls if each.metric is metric)


def percents(waterfall: DifferenceWaterfall) -> dict[str, float]:
    return {each.kind: percent_of(waterfall, each.effect) for each in waterfall.steps if each.effect is not None}


def test_a_rate_that_was_delivered_is_load() -> None:
    found = reconcile(planted(PlantedRun(seed=1)), planted(PlantedRun(seed=2, rate=10.0)))
    for metric in (ReconciledMetric.REQUEST_THROUGHPUT, ReconciledMetric.OUTPUT_THROUGHPUT):
        steps = percents(rate(found, metric))
        assert steps[StepKind.LOAD] == pytest.approx(25.0, abs=6.0)
        assert abs(steps[StepKind.UNEXPLAINED]) < 1e-6
        assert rate(found, metric).within_chance
        window = next(each for each in rate(found, metric).steps if each.kind is StepKind.WINDOW)
        assert "in flight at its start and end: " in window.evidence


def at_a_rate(*, growth: float = 0.0, failing: int = 0) -> ReconciledRun:
    """10 requests a second of 1 s each, or longer by `growth` for each second, of which every `failing`-th fails."""
    sent = np.sort(np.random.default_rng(5).uniform(0, 60, 600)).tolist()
    requests = [
        record(
            number, sent=at, first=at + 0.1, done=at + 1.0 + growth * at,
            status=RequestStatus.ERROR if failing and number % failing == 0 else RequestStatus.OK,
        )
        for number, at in enumerate(sent)
    ]  # fmt: skip
    return ReconciledRun(tool="servetop", rows=ClientRows.of(requests), closed=False)


def test_a_server_that_does_not_keep_up_is_unexplained() -> None:
    found = rate(reconcile(at_a_rate(), at_a_rate(growth=0.5)))
    assert percents(found)[StepKind.UNEXPLAINED] < -10.0
    assert found.within_chance is False


def test_requests_that_fail_are_load_that_was_not_delivered() -> None:
    found = rate(reconcile(at_a_rate(), at_a_rate(failing=4)))
    assert percents(found)[StepKind.LOAD] == pytest.approx(-28.6, abs=2.0)
    assert abs(percents(found)[StepKind.UNEXPLAINED]) < 1e-6


def test_a_concurrency_that_differs_is_load() -> None:
    steps = percents(rate(reconcile(closed_loop(16, seed=1), closed_loop(20, seed=2))))
    assert steps[StepKind.LOAD] == pytest.approx(22.2, abs=1.0)
    assert abs(steps[StepKind.UNEXPLAINED]) < 1.0


def test_a_client_that_pauses_between_requests_is_the_client() -> None:
    steps = percents(rate(reconcile(closed_loop(16, seed=1), closed_loop(16, seed=2, pause=0.1))))
    assert steps[StepKind.CLIENT] == pytest.approx(-8.5, abs=1.0)
    assert abs(steps[StepKind.UNEXPLAINED]) < 1.0


def test_a_slower_server_is_unexplained() -> None:
    steps = percents(rate(reconcile(closed_loop(16, seed=1), closed_loop(16, seed=2, e2el=1.2))))
    assert steps[StepKind.UNEXPLAINED] == pytest.approx(-18.0, abs=1.5)
    assert abs(steps[StepKind.CLIENT]) < 1.0
    assert rate(reconcile(closed_loop(16, seed=1), closed_loop(16, seed=2, e2el=1.2))).within_chance is False


def test_the_duration_that_a_tool_divides_by_is_its_definition() -> None:
    one, other = closed_loop(16, seed=1), closed_loop(16, seed=2, tool="vLLM bench")
    longer = dataclasses.replace(other.rows, duration=other.rows.seconds * 1.05)
    steps = percents(rate(reconcile(one, dataclasses.replace(other, rows=longer))))
    assert steps[StepKind.DEFINITION] == pytest.approx(-4.9, abs=0.2)
    assert abs(steps[StepKind.UNEXPLAINED]) < 1.0
