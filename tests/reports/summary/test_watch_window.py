"""The part of a watch that a user names is found by time of day, by date and from the end."""

from __future__ import annotations

from datetime import datetime

import pytest

from servetop.core.errors import UsageError
from servetop.reports.summary.watch_window import WatchWindow

BEGAN = datetime(2026, 11, 29, 22, 0, 0)
HOUR = 3600.0
SECONDS = 20 * HOUR


def window(since: str | None, until: str | None) -> WatchWindow:
    return WatchWindow.of(since, until, wall_epoch_s=BEGAN.timestamp(), seconds=SECONDS)


@pytest.mark.parametrize(
    ("since", "until", "hours"),
    [
        (None, None, (0.0, 20.0)),
        ("14:00", None, (16.0, 20.0)),
        ("14:00:36", None, (16.01, 20.0)),
        ("22:30", "23:00", (0.5, 1.0)),
        ("2h", None, (18.0, 20.0)),
        ("3h", "90m", (17.0, 18.5)),
        ("2026-11-30T06:00", "2026-11-30 06:30:00", (8.0, 8.5)),
        ("2026-11-28T06:00", None, (0.0, 20.0)),
        ("100h", None, (0.0, 20.0)),
    ],
)
def test_ends_are_seconds_of_the_watch(since: str | None, until: str | None, hours: tuple[float, float]) -> None:
    found = window(since, until)
    assert (found.start, found.until) == pytest.approx((hours[0] * HOUR, hours[1] * HOUR))


@pytest.mark.parametrize("text", ["noon", "25:00", "14:60", "2026-13-01", "-5m", "0s", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--since .*: give a time"):
        window(text, None)


def test_a_part_before_the_watch_is_refused_with_its_times() -> None:
    with pytest.raises(UsageError, match="the watch is from 2026-11-29 22:00:00 to 2026-11-30 18:00:00"):
        window("2026-11-28T06:00", "2026-11-28T07:00")


def test_the_date_is_written_where_there_are_several() -> None:
    assert window("14:00", None).time_text(17 * HOUR) == "15:00:00"
    assert window(None, None).time_text(17 * HOUR) == "2026-11-30 15:00:00"


def test_overlaps_end_with_the_window() -> None:
    found = window("2h", "1h")
    assert [found.overlap(begin * HOUR, end * HOUR) for begin, end in ((0, 18), (0, 18.5), (18.5, 30), (19, 20))] == [
        0.0, 0.5 * HOUR, 0.5 * HOUR, 0.0,
    ]  # fmt: skip
