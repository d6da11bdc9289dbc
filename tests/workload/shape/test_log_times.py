"""Times of logs are read in whatever unit they are written."""

import math

import pytest

from servetop.workload.shape.log_times import log_time, resolution_of
from servetop.workload.shape.logged_request import UnreadableLine

AT = 1_700_158_546.5


@pytest.mark.parametrize(
    "value",
    [
        AT,
        str(AT),
        AT * 1e3,
        int(AT * 1e6),
        str(int(AT * 1e9)),
        "2023-11-16T18:15:46.5Z",
        "2023-11-16 18:15:46.500000000",
        "2023-11-16T19:15:46.5+01:00",
        "2023-11-16 18:15:46.5 UTC",
    ],
)
def test_a_time_is_the_same_in_every_form(value: object) -> None:
    assert log_time(value) == pytest.approx(AT, abs=1e-3)


@pytest.mark.parametrize("value", [None, True, "", "yesterday", -1, math.nan, math.inf, 10**400, [AT], "2023-13-45"])
def test_anything_else_is_unreadable(value: object) -> None:
    with pytest.raises(UnreadableLine):
        log_time(value)


@pytest.mark.parametrize(
    ("value", "resolution"),
    [("2023-11-16T18:15:46Z", 1.0), ("2023-11-16T18:15:46.5Z", 0.0), (1_700_158_546, 1.0), (AT, 0.0), (12, 0.0)],
)
def test_whole_seconds_are_recognised(value: object, resolution: float) -> None:
    assert resolution_of(value) == resolution
