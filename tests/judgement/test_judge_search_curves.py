"""The judgement of searches on synthetic curves: what counts as right, and the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.run.search.search_answer import AnswerKind, TierAnswer
from tests.judgement.curve_server import CURVES, NOISES, draw_curve
from tests.judgement.judge_search_curves import ABOVE, BELOW, INSIDE, JudgedCurve, cases, judge_curve, limits_of, table

CURVE = replace(draw_curve("linear", 1), largest=10.0)
FOUND = TierAnswer(kind=AnswerKind.FOUND, load=10.2, low=9.8, high=10.6, binding="")
JUDGED = JudgedCurve(curve=CURVE, number=1, noise=0.01, where=INSIDE, answer=FOUND, minutes=4.0, budget=10.0)


def test_there_are_sixty_servers_at_each_noise() -> None:
    drawn = cases(10)
    assert len({case[:2] for case in drawn}) == 60
    assert sum(case[3] == INSIDE for case in drawn) == 60 * len(NOISES)
    assert {case[3] for case in drawn} == {INSIDE, ABOVE, BELOW}


@pytest.mark.parametrize("where", [ABOVE, BELOW])
def test_a_largest_load_out_of_range_is_out_of_the_limits(where: str) -> None:
    for kind in CURVES:
        for number in (0, 1):
            curve = draw_curve(kind, number)
            limits = limits_of(curve, where, budget=600.0)
            assert limits.low < limits.high
            assert limits.high < curve.true if where == ABOVE else limits.low > curve.true


def test_a_search_says_that_the_largest_load_is_beyond_its_range() -> None:
    assert judge_curve("linear", 1, 0.0, ABOVE, budget=300.0, seed=1).named


@pytest.mark.parametrize(
    ("judged", "named"),
    [
        (JUDGED, True),
        (replace(JUDGED, answer=replace(FOUND, kind=AnswerKind.CLIFF)), False),
        (replace(JUDGED, answer=replace(FOUND, kind=AnswerKind.WIDE)), False),
        (replace(JUDGED, answer=replace(FOUND, kind=AnswerKind.WIDE), minutes=9.5), True),
        (replace(JUDGED, answer=replace(FOUND, kind=AnswerKind.DRIFTED, load=None)), False),
        (replace(JUDGED, curve=replace(CURVE, kind="cliff")), False),
        (replace(JUDGED, where=ABOVE, answer=replace(FOUND, kind=AnswerKind.ABOVE)), True),
        (replace(JUDGED, where=BELOW), False),
    ],
)
def test_the_kind_of_an_answer_is_right_where_it_says_what_the_curve_is(judged: JudgedCurve, named: bool) -> None:
    assert judged.named is named


def test_an_answer_is_close_within_five_percent_or_one_request_in_flight() -> None:
    assert JUDGED.close
    assert not replace(JUDGED, answer=replace(FOUND, load=10.6)).close
    users = replace(CURVE, concurrency=True)
    assert replace(JUDGED, curve=users, answer=replace(FOUND, load=11.0)).close


def test_the_table_lists_what_is_wrong() -> None:
    wrong = replace(JUDGED, answer=replace(FOUND, load=12.0, low=11.6, high=12.4), noise=0.03)
    lines = table([JUDGED, wrong])
    assert "| linear | 2 | 50 % | 2 | 50 % | 100 % | 8 % | 4.0 |" in lines
    assert "| cliff | 0 | – | 0 | – | – | – | – |" in lines
    assert "- linear 1, noise 3 %: found 12 [11.6, 12.4] for 10, 4.0 minutes" in lines
    assert lines[-1] == "- none"
