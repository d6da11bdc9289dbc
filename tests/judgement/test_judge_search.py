"""The judgement of searches: servers drawn from a seed, one search, and the table."""

from __future__ import annotations

import pytest

from servetop.run.search.search_answer import AnswerKind, TierAnswer
from tests.judgement.judge_search import JudgedSearch, judge, largest_loads, table
from tests.judgement.searched_servers import KINDS, LargestLoad, draw_case


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_draws_one_server(kind: str) -> None:
    first, again, other = (draw_case(kind, seed) for seed in (21, 21, 22))
    assert (first.base.workload, first.objective) == (again.base.workload, again.objective)
    assert (first.base.workload, first.objective) != (other.base.workload, other.objective)


def test_a_search_finds_a_largest_load_that_was_stored() -> None:
    true = largest_loads()["decode-bound 1"]
    found = judge("decode-bound", 1, 1, true, budget=600.0)
    assert found.covers
    assert found.error <= 0.15


@pytest.mark.parametrize("prior", [0.25, 1.0, 4.0])
def test_a_search_recovers_from_a_prediction_that_is_wrong_by_a_factor(prior: float) -> None:
    true = largest_loads()["prefill-bound 1"]
    found = judge("prefill-bound", 1, 130, true, budget=600.0, precision=0.15, prior=prior)
    assert found.error <= 0.15


def test_a_curve_with_a_plateau_just_above_its_limit_is_not_resolved() -> None:
    true = largest_loads()["closed loop 2"]
    found = judge("closed loop", 2, 1, true, budget=600.0)
    assert found.answer.kind is AnswerKind.WIDE
    assert found.covers


def test_a_largest_load_is_kept_and_a_larger_one_is_not() -> None:
    case = draw_case("closed loop", 2)
    assert case.keeps(31.0)
    assert not case.keeps(33.0)


def test_the_table_lists_every_search_that_missed() -> None:
    right, wrong = (
        TierAnswer(kind=AnswerKind.FOUND, load=load, low=0.96 * load, high=1.04 * load, binding="")
        for load in (10.0, 12.0)
    )
    found = [
        JudgedSearch(kind="KV-bound", server=21, seed=seed, true=LargestLoad.of(10.1), answer=answer, minutes=5.0)
        for seed, answer in enumerate((right, wrong))
    ]
    lines = table(found)
    assert "| KV-bound | 2 | 50 % | 2 | 50 % | 50 % | 8 % | 5.0 |" in lines
    assert "| wide lengths | 0 | – | 0 | – | – | – | – |" in lines
    assert lines[-1] == "- KV-bound 21, seed 1: 12 [11.5, 12.5] for 10.1"
    assert table(found[:1])[-1] == "Every interval contains the largest load."


def test_coarse_searches_have_a_row_for_each_sort() -> None:
    answer = TierAnswer(kind=AnswerKind.FOUND, load=12.0, low=11.0, high=14.0, binding="")
    far = JudgedSearch(kind="KV-bound", server=21, seed=1, true=LargestLoad.of(10.1), answer=answer, minutes=5.0)
    lines = table([], {"coarse": [far]})
    assert "| coarse | 1 | 0 % | 1 | 0 % | 0 % | 27 % | 5.0 |" in lines
    assert lines[-1] == "- KV-bound 21, seed 1: 12 [11, 14] for 10.1, coarse"
