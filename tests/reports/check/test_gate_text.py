"""Differences and sentences as people read them."""

from __future__ import annotations

import math
from dataclasses import replace

from servetop.analysis.comparison.difference import Difference
from servetop.reports.check.gate_text import change_text, interval_text, sentence
from servetop.reports.check.regression_gate import judge_regressions
from servetop.reports.check.regression_limit import parse_regression_limit
from tests.reports.check.gates_for_tests import LOAD, comparison, differing


def texts(limit: str, difference: Difference) -> tuple[str, str, str]:
    key = limit.partition("=")[0]
    limits = [parse_regression_limit(limit)]
    (gate,) = judge_regressions(comparison(**{key: difference}), limits, loads={0: LOAD})
    return change_text(gate), interval_text(gate), sentence(gate)


def test_a_difference_is_in_the_unit_of_its_limit() -> None:
    assert texts("output_throughput=2%", differing(-0.05, 0.005))[:2] == ("−5.0 %", "[−5.9, −4.1]")
    assert texts("p99_ttft_ms=50ms", differing(0.05, 0.005, a=2000.0))[:2] == ("+100 ms", "[+80, +121]")


def test_a_sentence_says_what_would_tell() -> None:
    kept, unsure = (texts("p99_ttft_ms=10%", differing(0.05, error))[2] for error in (0.01, 0.04))
    assert kept == "+5.0 %, 95 % interval [+3.0, +7.1], limit 10 %"
    assert unsure.startswith("+5.0 %, 95 % interval [−2.9, +14], limit 10 %: ")
    assert unsure.endswith(
        " min more of each would distinguish half of the limit from the limit; a limit of 13.6 % would be kept"
    )


def test_no_time_above_some_hours_is_asked_for() -> None:
    text = texts("p99_ttft_ms=10%", differing(0.05, 2.0))[2]
    assert (
        "more than 4 h of each would be needed to distinguish half of the limit from the limit: use run-pairs" in text
    )


def test_the_limit_that_would_be_kept_is_rounded_up() -> None:
    text = texts("p99_ttft_ms=10%", differing(0.05, 0.04))[2]
    shown = float(text.rpartition("a limit of ")[2].partition(" ")[0])
    assert " kept" not in texts(f"p99_ttft_ms={shown}%", differing(0.05, 0.04))[2]


def test_an_unknown_error_has_the_cost_of_a_bound() -> None:
    unbounded = replace(differing(0.05, math.inf), shortage=2.0)
    change, interval, text = texts("p99_ttft_ms=10%", unbounded)
    assert (change, interval) == ("+5.0 %", "unknown")
    assert text.endswith("limit 10 %: too few requests to say how uncertain it is; 60 s more of each would bound it")
