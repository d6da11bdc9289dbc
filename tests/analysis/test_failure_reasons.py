"""The limit of failed requests, and the reasons of failures."""

from __future__ import annotations

import pytest

from servetop.analysis.failure_reasons import OTHER, FailureTally
from servetop.core.config_values.failure_limit import FailureLimit
from servetop.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "requests", "most"),
    [("10", 1000, 10), ("0", 5, 0), ("1%", 100, 1), ("1%", 99, 0), ("29%", 100, 29), ("0.02", 100, 2), (".5", 9, 4),
     ("2.5 %", 1000, 25), ("100%", 7, 7), ("1.0", 7, 7)],
)  # fmt: skip
def test_as_many_failures_as_allowed_are_within_the_limit_and_one_more_is_not(
    text: str, requests: int, most: int
) -> None:
    limit = FailureLimit.parse(text)
    assert not limit.is_exceeded(most, requests)
    assert limit.is_exceeded(most + 1, requests)


@pytest.mark.parametrize("text", ["", "-1", "101%", "1.5", "many", "nan", "1e3", "5%%"])
def test_an_invalid_failure_limit_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="as in 10, 2% or"):
        FailureLimit.parse(text)


def test_reasons_that_differ_only_in_numbers_are_counted_together() -> None:
    tally = FailureTally()
    tally.add("error", "no answer from 10.0.0.1:40001", http_status=None, at=3.0)
    tally.add("error", "no answer from 10.0.0.1:40002", http_status=None, at=2.0)
    tally.add("error", "HTTP 500: no luck", http_status=500, at=None)
    tally.add("error", "HTTP 503: no luck", http_status=503, at=5.0)
    tally.add("timeout", None, http_status=None, at=9.0)
    found = tally.most_frequent(10)
    assert (found[0].reason, found[0].count, found[0].first_at) == ("no answer from 10.0.0.1:40001", 2, 2.0)
    assert [each.reason for each in found[1:]] == ["HTTP 500: no luck", "HTTP 503: no luck", "timeout"]


def test_reasons_that_differ_only_in_the_response_they_quote_are_counted_together() -> None:
    tally = FailureTally()
    for word in ("one", "two"):
        tally.add("error", f"the response ended without a token; it starts with '{word}'", http_status=200, at=1.0)
    assert [(each.reason[-5:], each.count) for each in tally.most_frequent(10)] == [("'one'", 2)]


def test_rare_reasons_are_combined_so_that_the_counts_add_up() -> None:
    tally = FailureTally()
    for number in range(1000):
        tally.add("error", "x" * (number % 500), http_status=None, at=float(number))
    found = tally.most_frequent(5)
    assert len(found) == 5
    assert found[-1].reason == OTHER
    assert sum(each.count for each in found) == tally.total == 1000
