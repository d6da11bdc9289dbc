"""The judgement of searches on servers whose speed varies: largest loads, one search, and the table."""

from __future__ import annotations

import pytest

from servetop.run.search.search_answer import AnswerKind, TierAnswer
from tests.judgement.curve_server import NOISES
from tests.judgement.judge_search import JUDGED, JudgedSearch, judge
from tests.judgement.judge_search_noise import SERVERS, noisy_loads, table
from tests.judgement.searched_servers import LargestLoad


def test_each_judged_server_has_a_largest_load_at_each_noise() -> None:
    known = noisy_loads()
    for kind in JUDGED:
        for server in SERVERS:
            even, *uneven = (known[f"{kind} {server}, noise {100 * noise:g} %"] for noise in NOISES)
            for each in uneven:
                assert each.middle == pytest.approx(even.middle, rel=0.3), "the noise is a small part of the latency"


def test_a_search_finds_the_largest_load_of_an_uneven_server() -> None:
    true = noisy_loads()["decode-bound 21, noise 3 %"]
    found = judge("decode-bound", 21, 1, true, 0.03, budget=300.0)
    assert found.covers
    assert found.error <= 0.3


def test_the_table_has_a_row_for_each_noise_and_lists_what_missed() -> None:
    right, wrong = (
        TierAnswer(kind=AnswerKind.FOUND, load=load, low=0.96 * load, high=1.04 * load, binding="")
        for load in (10.0, 12.0)
    )
    found = [
        (noise, JudgedSearch(kind=kind, server=21, seed=1, true=LargestLoad.of(10.1), answer=answer, minutes=5.0))
        for noise, kind, answer in ((0.0, "KV-bound", right), (0.03, "closed loop", wrong))
    ]
    lines = table(found)
    assert "| noise 0 % | 1 | 100 % | 1 | 100 % | 100 % | 8 % | 5.0 |" in lines
    assert "| closed loops | 1 | 0 % | 1 | 0 % | 0 % | 8 % | 5.0 |" in lines
    assert "| all | 2 | 50 % | 2 | 50 % | 50 % | 8 % | 5.0 |" in lines
    assert lines[-1] == "- closed loop 21, seed 1: 12 [11.5, 12.5] for 10.1, noise 3 %"
