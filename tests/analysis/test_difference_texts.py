"""Differences, intervals and durations as people write them."""

from __future__ import annotations

import math

import pytest

from servetop.analysis.comparison.difference_texts import (
    difference_text,
    duration_text,
    interval_text,
    margin_text,
    signed,
)
from tests.analysis.comparison_values import value


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.001, "0"),
        (0.42, "+0.42"),
        (-3.14, "−3.1"),
        (9.949, "+9.9"),
        (12.4, "+12"),
        (-1234.0, "−1,234"),
        (474_706.0, "+475k"),
        (3.5e8, "+350M"),
        (3e11, "+3e11"),
        (math.inf, "+∞"),
        (-math.inf, "−∞"),
        (math.nan, "–"),
    ],
)
def test_numbers_have_a_sign_and_few_digits(number: float, text: str) -> None:
    assert signed(number) == text


def test_a_relative_difference_is_in_percent() -> None:
    loss = value("output_throughput", "worse")
    assert (difference_text(loss), interval_text(loss), margin_text(loss)) == ("−3.1 %", "[−3.6, −2.6]", "2 %")


def test_a_difference_of_shares_is_in_points_and_others_in_their_unit() -> None:
    usage = value("mean_kv_usage", "worse", difference=0.016, low=0.006, high=0.026)
    assert (difference_text(usage), interval_text(usage), margin_text(usage)) == ("+1.6 pt", "[+0.60, +2.6]", "2 pt")
    preemptions = value("preemptions_per_request", "worse", difference=0.5, low=0.1, high=None)
    assert (difference_text(preemptions), interval_text(preemptions)) == ("+0.50 /req", "[+0.10, +∞]")


def test_an_unknown_difference_has_no_interval() -> None:
    unknown = value("p99_ttft_ms", "cannot tell", difference=None, low=None, high=None)
    assert (difference_text(unknown), interval_text(unknown)) == ("–", "–")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (90.0, "90 s"), (121.0, "3 min"), (5_700.0, "95 min"), (7_800.0, "2 h 10 min"), (7_200.0, "2 h"),
     (200_000.0, "3 days")],
)  # fmt: skip
def test_durations_are_rounded_up_to_what_is_shown(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_an_interval_that_excludes_nothing_is_unknown() -> None:
    endless = [value("p99_ttft_ms", "cannot tell", low=low, high=None) for low in (-1.0, None, -0.345)]
    assert [interval_text(each) for each in endless] == ["unknown", "unknown", "[−34, +∞]"]
