"""The second generator draws anything, and what it shows is read from the state."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from tests.judgement.drawn_freely import drawn_freely
from tests.judgement.kinds import HARD, KINDS
from tests.judgement.known_truth import KnownTruth
from tests.judgement.scenario import Cause, Scenario


@pytest.fixture(scope="module")
def drawn() -> list[Scenario]:
    found = (drawn_freely(Random(f"test/{number}"), f"free {number}") for number in range(60))
    return list(itertools.islice(filter(None, found), 12))


def test_engines_workloads_and_loads_differ(drawn: list[Scenario]) -> None:
    assert len(drawn) == 12
    assert len({each.plan.engine_profile for each in drawn}) > 3
    assert len({repr(each.plan.config.workload) for each in drawn}) == 12
    assert len({len(each.plan.config.stages) for each in drawn}) > 2
    assert {each.plan.replicas for each in drawn} == {1, 2}


def test_a_draw_gives_the_same_run_again(drawn: list[Scenario]) -> None:
    number = int(drawn[0].name.removeprefix("free "))
    again = drawn_freely(Random(f"test/{number}"), drawn[0].name)
    assert again is not None
    assert (again.plan, again.truth) == (drawn[0].plan, drawn[0].truth)


def test_the_truth_agrees_with_the_requests(drawn: list[Scenario]) -> None:
    met = {each.name: KnownTruth(each).state.share_met() for each in drawn}
    healthy = [each.name for each in drawn if each.truth.cause is Cause.HEALTHY]
    limited = [each.name for each in drawn if each.truth.cause in (Cause.KV, Cause.BATCH, Cause.RATE)]
    assert healthy
    assert min(met[name] for name in healthy) >= 0.99
    assert all(met[name] < 0.95 for name in limited)


def test_a_tenth_of_all_runs_are_drawn_freely() -> None:
    total = sum(map(len, {**KINDS, **HARD}.values()))
    assert len(HARD["free"]) >= 0.1 * total
