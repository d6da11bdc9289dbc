"""Servers that fail a share of their requests, and clients whose failures a watch must not name."""

from __future__ import annotations

import functools
import itertools

import pytest

from servetop.core.events import RequestStatus
from tests.judgement.counted_answers import server_failures
from tests.judgement.failing_servers import ABORTS, SHARES, WRONG
from tests.judgement.kinds import WATCHED, each_scenario, scenario
from tests.judgement.queue_truth import lasting_queues
from tests.judgement.scenario import Cause, Scenario
from tests.judgement.watch_scores import serves_all, true_limits, true_onsets, watch_score

SIX = len(WATCHED["failing-share"]) // len(SHARES)


@functools.cache
def drawn(kind: str, number: int) -> Scenario:
    return scenario(kind, number, seed=21)


@pytest.mark.parametrize(("number", "share"), [(each * SIX, share) for each, share in enumerate(SHARES)])
def test_a_share_fails_from_the_onset_on_and_nothing_waits(number: int, share: float) -> None:
    found = drawn("failing-share", number)
    assert found.kind == f"fails {100 * share:g} %"
    failed = sorted(server_failures(found.run))
    (outage,) = found.plan.outages
    assert failed[0] == found.truth.onset == true_onsets(found)[0] >= outage.start
    later = [record for record in found.run.records if record.due >= outage.start]
    assert len(failed) / len(later) == pytest.approx(share, rel=0.9)
    assert not lasting_queues(found.run)
    assert true_limits(found) == {"failing"}


def test_a_watch_names_a_server_that_fails_a_fifth() -> None:
    found = watch_score(drawn("failing-share", 2 * SIX))
    assert found.watch.right
    assert found.headline.startswith("failing for ")
    assert abs(found.watch.onset_error) <= 5
    assert 0 < found.reported_after < 30
    assert found.expected


@pytest.mark.parametrize(("kind", "title"), [("aborts", ABORTS), ("wrong-requests", WRONG)])
def test_what_only_clients_fail_is_not_named(kind: str, title: str) -> None:
    found = drawn(kind, 0)
    assert (found.kind, true_limits(found), serves_all(found)) == (title, frozenset(), True)
    assert not list(server_failures(found.run))
    scored = watch_score(found)
    assert (scored.clients_fail, scored.healthy, scored.expected) == (True, False, False)
    assert (scored.watch.right, scored.watch.alarms) == (True, 0.0)
    assert (scored.run is None) == (kind == "aborts"), "the load of a run is not cut off"


def test_clients_abort_a_share_of_the_requests_in_flight() -> None:
    found = drawn("aborts", 0)
    aborted = [record for record in found.run.records if record.status is RequestStatus.CANCELLED]
    assert len(aborted) >= 0.05 * len(found.run.records)
    assert found.truth.cause is Cause.HEALTHY


def test_the_draws_are_equal_for_equal_seeds() -> None:
    (first,) = itertools.islice(each_scenario(21, kinds=["aborts"]), 1)
    assert first.truth == drawn("aborts", 0).truth
