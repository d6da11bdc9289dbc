"""The failure limit is exact at its border, as a number and as a share."""

import pytest

from servetop.core.config_values.failure_limit import FailureLimit
from servetop.core.errors import UsageError


@pytest.mark.parametrize("text", ["1%", " 1 % ", "0.01", ".01"])
def test_one_failure_of_a_hundred_is_within_one_percent(text: str) -> None:
    limit = FailureLimit.parse(text)
    assert not limit.is_exceeded(1, 100)
    assert limit.is_exceeded(1, 99)


def test_a_whole_number_counts_requests() -> None:
    limit = FailureLimit.parse("1")
    assert not limit.is_exceeded(1, 1)
    assert limit.is_exceeded(2, 1000)


def test_a_share_of_one_is_never_exceeded() -> None:
    assert not FailureLimit.parse("100%").is_exceeded(5, 5)


def test_the_limit_keeps_its_text_without_spaces_around_it() -> None:
    assert FailureLimit.parse(" 2% ").text == "2%"


@pytest.mark.parametrize("text", ["", "-1", "101%", "1.5", "many", "1e3", "nan", "."])
def test_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="use a number of requests or a share"):
        FailureLimit.parse(text)
