"""A busy client, missing replicas, failing requests and a failing engine are named if only one run has them."""

from __future__ import annotations

from typing import Any

import pytest

from servetop.analysis.confounding.conditions import ReplicaCounts
from servetop.analysis.confounding.service_rules import (
    client_confounder,
    engine_errors_confounder,
    failures_confounder,
    replicas_confounder,
)
from servetop.core.events import Severity
from tests.analysis.measured_conditions import client, conditions


@pytest.mark.parametrize(
    ("busy", "phrase", "severity"),
    [
        ({"slip": 0.4}, "requests sent 400 ms late at p99", Severity.ERROR),
        ({"slip": 0.04}, "requests sent 40 ms late at p99, and 1.0 ms", Severity.WARNING),
        ({"lag": 0.05}, "its event loop lagged 50 ms at p99, and 1.0 ms", Severity.WARNING),
        ({"cpu": 0.95}, "its senders used 95% of their processors, and 20%", Severity.WARNING),
    ],
)
def test_the_busier_client_is_named_with_the_reason(busy: dict[str, float], phrase: str, severity: Severity) -> None:
    found = client_confounder(conditions(), conditions(client=client(**busy)))
    assert found is not None
    assert found.text == f"the client of B was the busier one: {phrase}"
    assert found.severity is severity
    turned = client_confounder(conditions(client=client(**busy)), conditions())
    assert turned is not None
    assert "client of A" in turned.text


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"slip": 0.004}, {"slip": 0.018}),
        ({"slip": 0.09}, {"slip": 0.12}),
        ({"slip": 0.4}, {"slip": 0.6}),
        ({"cpu": 0.8}, {"cpu": 0.9}),
    ],
)
def test_similar_clients_are_not_named_not_even_around_a_limit(a: dict[str, float], b: dict[str, float]) -> None:
    assert client_confounder(conditions(client=client(**a)), conditions(client=client(**b))) is None


def _replicas(*served: float, requests: int = 600) -> Any:
    return conditions(replicas=ReplicaCounts(configured=len(served), served=served, requests=requests))


def test_a_replica_that_served_nothing_is_named() -> None:
    found = replicas_confounder(_replicas(200, 200, 200), _replicas(300, 0, 300))
    assert found is not None
    assert found.text == "2 of 3 replicas served requests in B and 3 in A"


def test_other_shares_are_named_beyond_chance_and_whatever_their_order() -> None:
    assert replicas_confounder(_replicas(300, 200, 100), _replicas(100, 300, 200)) is None
    assert replicas_confounder(_replicas(200, 200, 200), _replicas(240, 180, 180)) is None
    found = replicas_confounder(_replicas(200, 200, 200), _replicas(400, 100, 100))
    assert found is not None
    assert "served 67% in B and 33% in A" in found.text
    few = [_replicas(*(3.0, 3.0, 3.0), requests=9), _replicas(*(6.0, 2.0, 1.0), requests=9)]
    assert replicas_confounder(few[0], few[1]) is None


def test_another_number_of_configured_replicas_is_left_to_the_manifest() -> None:
    assert replicas_confounder(_replicas(200, 200, 200), _replicas(300, 300)) is None


@pytest.mark.parametrize(("failed", "named"), [((0, 3), False), ((0, 20), True), ((20, 30), False), ((20, 2), True)])
def test_failed_requests_are_named_if_one_run_has_many_more(failed: tuple[int, int], named: bool) -> None:
    a, b = (conditions(failed=count) for count in failed)
    assert (failures_confounder(a, b) is not None) == named


def test_an_engine_that_restarted_or_logged_errors_is_named_if_the_other_did_not() -> None:
    restarted, failing = conditions(restarts=2), conditions(error_lines=1)
    texts = [found.text for found in (engine_errors_confounder(restarted, failing),) if found]
    assert texts == ["the engine of A restarted 2 times"]
    found = engine_errors_confounder(conditions(), failing)
    assert found is not None
    assert found.text == "the engine of B logged 1 error, the other one none"
    assert engine_errors_confounder(failing, conditions(error_lines=9)) is None
