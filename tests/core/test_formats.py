"""Human-readable units: short, of bounded width, and `–` for unknown values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.text import formats


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.00 ms"), (0.00042, "0.42 ms"), (0.0123, "12.3 ms"), (0.34, "340 ms"), (0.9996, "1.00 s"),
        (1.234, "1.23 s"), (12.34, "12.3 s"), (99.96, "1.7 min"), (270.0, "4.5 min"), (7200.0, "2.0 h"),
        (math.nan, "–"), (None, "–"),
    ],
)  # fmt: skip
def test_durations_have_a_suitable_unit(value: float | None, shown: str) -> None:
    assert formats.seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.00"), (0.424, "0.42"), (9.996, "10.0"), (64.0, "64.0"), (118.4, "118"), (2852.4, "2,852"),
        (9999.6, "10.0k"), (12_900.0, "12.9k"), (999_600.0, "1.00M"), (1.23e6, "1.23M"), (2e10, "20.0G"),
        (math.inf, "∞"), (math.nan, "–"),
    ],
)  # fmt: skip
def test_a_rate_keeps_three_digits(value: float, shown: str) -> None:
    assert formats.number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.424, "0.42"), (64.0, "64.0"), (118.4, "118"), (59_912.4, "59,912"), (1.23e6, "1,230,000"), (math.inf, "∞"),
     (math.nan, "–"), (None, "–")],
)  # fmt: skip
def test_milliseconds_keep_all_their_whole_digits(value: float | None, shown: str) -> None:
    assert formats.in_full(value) == shown


def test_a_share_below_one_is_never_100_percent() -> None:
    assert formats.percent(0.9996) == "99.9 %"
    assert formats.percent(1.0) == "100 %"
    assert formats.percent(0.004) == "0.4 %"
    assert formats.percent(math.nan) == "–"


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100%"), (0.9999, "99%"), (0.95, "95%"), (0.9496, "94%"), (0.29, "29%"), (0.0, "0%")]
)
def test_a_whole_percentage_is_never_more_than_the_share(share: float, text: str) -> None:
    assert formats.whole_percent(share) == text


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100 %"), (0.9999, "99.9 %"), (0.95, "95 %"), (0.0, "0 %"), (1.055, "105.5 %")]
)
def test_a_share_without_zeros_is_rounded_down(share: float, text: str) -> None:
    assert formats.percent(share, zeros="never") == text


@given(st.integers(min_value=0, max_value=1000))
def test_a_share_of_tenths_of_a_percent_is_shown_as_it_is(tenths: int) -> None:
    assert formats.percent(tenths / 1000, zeros="always") == f"{tenths // 10}.{tenths % 10} %"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00042, "0.42 ms"),
        (0.098, "98 ms"),
        (0.9996, "1.0 s"),
        (3.41, "3.4 s"),
        (17.2, "17 s"),
        (270.0, "270 s"),
        (math.nan, "–"),
    ],
)
def test_durations_in_prose_have_no_zeros_and_no_minutes(value: float, text: str) -> None:
    assert formats.seconds(value, prose=True) == text


def test_a_difference_shows_its_sign() -> None:
    assert [formats.signed_percent(each) for each in (0.012, -0.003, 0.0001)] == ["+1.2 %", "−0.3 %", "±0.0 %"]
    assert [formats.signed_percent(each) for each in (9.9994, 9.9996, 126.9)] == ["+999.9 %", "+1,000 %", "+12,690 %"]


def test_times_and_memory() -> None:
    assert formats.clock_time(134.9) == "00:02:14"
    assert formats.clock(7.0) == "0:07"
    assert formats.clock(3734.0) == "1:02:14"
    assert formats.memory(71 << 30, 140 << 30) == "71.0/140.0 GiB"
    assert formats.memory(None, 140 << 30) == "–"
    assert formats.memory(71.2 * (1 << 30)) == "71.2 GiB"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0712, "71.2 mJ"), (0.4, "400 mJ"), (0.9996, "1.00 J"), (4.312, "4.31 J"), (12_900.0, "12.9 kJ"),
        (999_600.0, "1.00 MJ"), (3.6e9, "3600 MJ"), (math.nan, "–"),
    ],
)  # fmt: skip
def test_an_energy_has_three_digits_and_a_unit(value: float, shown: str) -> None:
    assert formats.joules(value) == shown


@given(st.floats(min_value=0, max_value=1e6, allow_nan=False))
def test_durations_never_need_more_than_seven_characters(value: float) -> None:
    assert len(formats.seconds(value)) <= 7


@given(st.floats(min_value=0, max_value=9e11, allow_nan=False))
def test_rates_and_counts_never_need_more_than_six(value: float) -> None:
    assert len(formats.number(value)) <= 6
    assert len(formats.count(value)) <= 6


@pytest.mark.parametrize(
    ("now", "then", "text"),
    [(103.1, 100, "+3.1 %"), (97, 100, "−3.0 %"), (5, 5, "±0.0 %"), (0, 0, "±0.0 %"), (250, 100, "+150 %"),
     (3300, 100, "×33"), (5, 0, "–"), (math.nan, 1, "–"), (0, 10, "−100.0 %")],
)  # fmt: skip
def test_a_change_from_an_earlier_value(now: float, then: float, text: str) -> None:
    assert formats.relative(now, then) == text


@pytest.mark.parametrize(
    ("value", "currency", "text"),
    [
        (0.31234, "$", "$0.312"),
        (0.000213, None, "0.000213"),
        (2.5, "EUR", "2.50 EUR"),
        (12.345, "€", "€12.3"),
        (1249.6, "$", "$1,250"),
        (0.0, None, "0"),
        (math.nan, "$", "–"),
        (None, "$", "–"),
    ],
)
def test_money_has_three_digits_and_its_currency_where_it_belongs(
    value: float | None, currency: str | None, text: str
) -> None:
    assert formats.money(value, currency) == text


def test_an_interval_of_money_has_the_decimals_of_the_amount() -> None:
    assert formats.money_interval(0.312, (0.3049, 0.3201), "$") == "$0.312 [0.305, 0.320]"
    assert formats.money_interval(0.312, None, "$") == "$0.312"
