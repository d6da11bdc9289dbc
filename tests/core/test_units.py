"""Durations and rates as users type them."""

import pytest

from servetop.core.errors import UsageError
from servetop.core.units import parse_rate, parse_seconds


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("90s", 90), ("1.5m", 90), ("500ms", 0.5), ("2h", 7200)])
def test_durations_are_seconds_unless_a_unit_says_otherwise(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["0", "-3s", "soon", "3 weeks", "inf", ""])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        parse_seconds(text)


def test_several_rates_are_a_sweep() -> None:
    with pytest.raises(UsageError, match="'5,10' is several request rates: for several use servetop sweep"):
        parse_rate("5,10")


@pytest.mark.parametrize("text", ["0", "-1", "fast", "nan", "1e9"])
def test_negative_and_absurd_rates_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="request"):
        parse_rate(text)
