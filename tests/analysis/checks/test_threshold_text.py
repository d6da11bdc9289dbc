"""Conditions in words."""

from __future__ import annotations

import pytest

from servetop.analysis.checks.threshold_text import figure_text, threshold_text
from servetop.analysis.checks.thresholds import parse_threshold


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p99_ttft_ms<=500", "p99 TTFT ≤ 500 ms"),
        ("p99.9_itl_ms < 50", "p99.9 ITL < 50 ms"),
        ("steady.mean_e2el_ms>=1500", "steady mean E2EL ≥ 1,500 ms"),
        ("median_client_queue_time_ms!=0", "median client_queue_time ≠ 0 ms"),
        ("failed==0", "failed = 0"),
        ("server.preemptions<=0", "server.preemptions ≤ 0"),
    ],
)
def test_a_latency_has_its_name_and_unit_and_other_keys_stay(text: str, words: str) -> None:
    assert threshold_text(parse_threshold(text)) == words


def test_a_figure_has_the_digits_that_tell_it_from_its_limit() -> None:
    figures = {812.3: "812", 12.34: "12.3", 499.6: "499.60", 499.996: "499.996", 500.0: "500"}
    assert {value: figure_text(value, 500.0) for value in figures} == figures
