"""Answers in words."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from servetop.run.search.answer_text import (
    answer_sentence,
    binding_text,
    interval_text,
    is_kept,
    load_text,
    others_text,
    restart_text,
    seen_figure,
    seen_text,
)
from servetop.run.search.objective_text import parse_objective
from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_evidence import Evidence, Probe
from tests.run.search.searches import FOUND, SEARCH

TTFT = [parse_objective("p99_ttft<500ms")]
WIDE = TierAnswer(kind=AnswerKind.WIDE, load=10.0, low=8.1, high=13.0, binding="queue", minutes_left=2.2)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (FOUND, "vLLM serves 11.2 req/s [10.9, 11.5] within p99 TTFT ≤ 500 ms"),
        (
            TierAnswer(kind=AnswerKind.CLIFF, load=10.0, low=10.0, high=11.0, binding="queue"),
            "vLLM serves 10 req/s within p99 TTFT ≤ 500 ms: cliff between 10 and 11 req/s",
        ),
        (
            WIDE,
            "the load of vLLM within p99 TTFT ≤ 500 ms is not resolved: 8.1 to 13 req/s; about 3 more minutes would",
        ),
        (
            TierAnswer(kind=AnswerKind.ABOVE, load=None, low=100.0, high=math.inf, binding=""),
            "vLLM serves ≥ 100 req/s within p99 TTFT ≤ 500 ms: the largest load allowed is within the objectives",
        ),
        (
            TierAnswer(kind=AnswerKind.ABOVE, load=None, low=96.0, high=math.inf, binding=""),
            "vLLM serves ≥ 96 req/s within p99 TTFT ≤ 500 ms: perhaps 100 req/s too, the largest load allowed",
        ),
        (
            TierAnswer(kind=AnswerKind.BELOW, load=None, low=0.0, high=1.0, binding="p99_ttft<500ms"),
            "vLLM does not serve 1 req/s within p99 TTFT ≤ 500 ms: the least load allowed is beyond the objectives",
        ),
    ],
)
def test_an_answer_is_one_sentence(answer: TierAnswer, sentence: str) -> None:
    assert answer_sentence("vLLM", answer, TTFT, SEARCH) == sentence


def test_what_binds_is_named_once_the_load_is_known() -> None:
    assert binding_text(FOUND, TTFT) == "p99 TTFT ≤ 500 ms is missed above it"
    assert binding_text(dataclasses.replace(FOUND, binding="queue"), TTFT) == "the queue grows above it"
    assert binding_text(WIDE, TTFT) == ""


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.0, math.inf, "not known yet"),
        (20.0, math.inf, "above 20 req/s"),
        (0.0, 20.0, "below 20 req/s"),
        (6.1, 13.0, "6.1 to 13 req/s"),
    ],
)
def test_an_interval_is_cut_to_the_loads_allowed(low: float, high: float, text: str) -> None:
    assert interval_text(dataclasses.replace(WIDE, low=low, high=high), SEARCH) == text


def test_requests_in_flight_are_whole() -> None:
    assert load_text(48.0, dataclasses.replace(SEARCH, over="max_concurrency")) == "48 in flight"


def test_what_was_seen_is_that_of_the_probe() -> None:
    texts = ("p99_ttft<500ms", "itl<40ms@90%", "error_rate<1%")
    ones, due = np.ones(4), np.array([0.5, 1.0, 2.0, 3.0])
    missed = (np.array([1.0, 0.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]))
    evidence = Evidence(probes=(), due=due, done=due, counted=(ones, ones, ones), missed=missed)
    seen = seen_text(evidence, [parse_objective(text) for text in texts], probe=Probe(load=1, begin=1, end=3))
    assert seen == "p99 TTFT ≤ 500 ms: 100 % within, ITL ≤ 40 ms for 90 %: 50 % within, errors ≤ 1 %: 0 % failed"
    assert "no sample yet" in seen_text(evidence, TTFT, probe=Probe(load=1, begin=7, end=9))


def test_a_mean_is_that_of_all_requests_of_the_probe() -> None:
    objective = parse_objective("mean_ttft<200ms")
    due = np.array([0.5, 1.0, 2.0, 3.0])
    evidence = Evidence(
        probes=(), due=due, done=due, counted=(np.ones(4),), missed=(np.zeros(4),), sums=(np.array([9, 0.1, 0.34, 9]),)
    )
    probe = Probe(load=1, begin=1, end=3)
    assert seen_text(evidence, [objective], probe=probe) == "mean TTFT ≤ 200 ms: 220 ms"
    assert not is_kept(objective, seen_figure(evidence, 0, probe=probe, objective=objective))
    assert "no sample yet" in seen_text(evidence, [objective], probe=Probe(load=1, begin=7, end=9))


@pytest.mark.parametrize(
    ("text", "figure", "kept"),
    [
        ("p90_ttft<1s", 0.1, True),
        ("p90_ttft<1s", 0.101, False),
        ("mean_ttft<1s", 1.0, True),
        ("mean_ttft<1s", 1.01, False),
        ("mean_ttft<1s", math.nan, True),
    ],
)
def test_a_figure_is_kept_up_to_what_is_allowed(text: str, figure: float, kept: bool) -> None:
    assert is_kept(parse_objective(text), figure) is kept


def test_a_restart_says_what_no_longer_counts() -> None:
    nothing = np.empty(0)
    evidence = Evidence(probes=(), due=nothing, done=nothing, counted=(nothing,), missed=(nothing,))
    assert restart_text(evidence) == ""
    earlier = tuple(Probe(load=4.0, begin=at, end=at + 50) for at in (0.0, 50.0, 100.0))
    assert restart_text(dataclasses.replace(evidence, earlier=earlier, restarted_at=152.0)) == (
        "the server restarted at 2:32: nothing before that counts (3 probes, 2:30 of load)"
    )


def test_other_clients_are_named_with_their_share_and_what_to_do() -> None:
    nothing = np.empty(0)
    evidence = Evidence(probes=(), due=nothing, done=nothing, counted=(nothing,), missed=(nothing,))
    assert others_text(evidence) == ""
    assert others_text(dataclasses.replace(evidence, others=0.44)) == (
        "44 % of the requests at the server are not from this search: search again when no other client uses it"
    )
