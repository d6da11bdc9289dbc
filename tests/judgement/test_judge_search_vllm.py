"""Agreement of repeated searches; the searches themselves are repeated by `make judge-search-vllm`."""

from __future__ import annotations

import math

import pytest

from tests.judgement.judge_search_vllm import Found, overlap, scatter, table


def answer(load: float, low: float, high: float) -> Found:
    return Found(kind="load", load=load, low=low, high=high, minutes=2.0, client_bound=False)


def test_pairs_overlap_where_their_intervals_have_a_load_in_common() -> None:
    answers = [answer(10, 9, 11), answer(11, 10.5, 12), answer(13, 11.5, 14)]
    assert overlap(answers) == pytest.approx(2 / 3)
    assert overlap([*answers[:1], answer(math.nan, 0, math.inf)]) == 1
    assert math.isnan(overlap(answers[:1]))


def test_scatter_is_one_where_answers_differ_as_their_intervals_claim() -> None:
    spread = math.exp(1.96 * 0.1)
    answers = [answer(load, load / spread, load * spread) for load in (10 * math.exp(0.1), 10 * math.exp(-0.1))]
    assert scatter(answers) == pytest.approx(math.sqrt(2))
    assert math.isnan(scatter([answers[0], answer(math.nan, 0, math.inf)]))


def test_the_table_names_every_answer() -> None:
    lines = table([answer(10, 9, 11), answer(12, 11.5, 13)], [answer(10, 9, 11), answer(10, 8, 12)])
    assert lines[2] == "| one start | 2 | 11 | 10 to 12 | 18 % | 0 % | no | 3.04 | 2.0 |"
    assert "12 [11.5, 13]" in lines[5]
    assert lines[-1] == "Kinds of answer: load. Ended because the client could not send more: 0."
