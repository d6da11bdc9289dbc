"""Why a metric is undecided and what would tell, as people write it."""

from __future__ import annotations

import pytest

from servetop.analysis.comparison.undecided_texts import (
    cost_text,
    measured_text,
    stage_length_text,
    text_of_cost,
    undecided_text,
)
from servetop.analysis.comparison.verdicts import Cost
from tests.analysis.comparison_values import value


def test_a_cost_is_in_starts_or_in_time_and_empty_if_unknown() -> None:
    assert cost_text(starts=1, seconds=None) == "1 more start"
    assert cost_text(starts=4, seconds=None) == "4 more starts"
    assert cost_text(starts=None, seconds=7_800.0) == "2 h 10 min more"
    assert cost_text(starts=None, seconds=None) == ""


def test_no_cost_is_above_four_hours_or_a_hundred_starts() -> None:
    costs = [Cost(seconds=4 * 3600.0), Cost(seconds=1911 * 3600.0), Cost(starts=100), Cost(starts=1011)]
    assert [text_of_cost(each) for each in costs] == [
        "4 h more", "more than 4 h", "100 more starts", "more than 100 starts",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "fields", "text", "brief"),
    [
        ("wide interval", {"more_seconds": 780.0}, "13 min more", "13 min more"),
        ("wide interval", {"more_than": "4 h"}, "more than 4 h", "more than 4 h"),
        ("too short", {"more_seconds": 780.0}, "too short", "too short"),
        ("not steady", {"more_than": "4 h"}, "not steady", "not steady"),
        ("too few values", {"more_seconds": 780.0}, "too few values, 13 min more", "too few values"),
        ("too few values", {}, "too few values", "too few values"),
        ("many metrics", {"more_starts": 2}, "one of many metrics, 2 more starts", "many metrics"),
        ("near the margin", {"more_seconds": 780.0}, "near the margin, 13 min more", "near the margin"),
        ("not measured", {"difference": None, "note": "not measured in B"}, "not measured in B", "not measured in B"),
    ],
)
def test_the_reason_stands_beside_what_would_tell(
    reason: str, fields: dict[str, object], text: str, brief: str
) -> None:
    found = value("p99_ttft_ms", "cannot tell", reason=reason, **fields)
    assert (undecided_text(found), undecided_text(found, brief=True)) == (text, brief)


def test_what_was_measured_is_that_of_the_configuration_with_less() -> None:
    assert measured_text((9.91, 60.0), (1_740, 1_174)) == "9.91 s and 1,174 requests"


def test_a_stage_has_to_settle_before_its_window() -> None:
    assert [stage_length_text(each) for each in (40.0, 66.7, 400.0)] == ["60 s", "110 s", "10 min"]
