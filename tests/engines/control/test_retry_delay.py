"""The delay before a server or a page is asked again: short in the first minute, longer later."""

from __future__ import annotations

from itertools import pairwise

import pytest

from servetop.engines.control.retry_delay import PageRetries, retry_delay


@pytest.mark.parametrize(("outage", "delay"), [(0.0, 2.0), (40.0, 2.0), (60.0, 3.0), (300.0, 15.0), (86_400.0, 30.0)])
def test_the_delay_grows_with_the_outage_and_is_three_seconds_within_the_first_minute(
    outage: float, delay: float
) -> None:
    assert retry_delay(outage) == delay


def test_a_page_that_fails_is_read_again_at_once_then_less_often() -> None:
    retries, attempts = PageRetries(), []
    for at in range(600):
        if retries.is_due(float(at)):
            attempts.append(at)
            retries.add(float(at), read=False)
    gaps = [later - before for before, later in pairwise(attempts)]
    assert gaps[:2] == [1, 2]
    assert max(gaps[: attempts.index(next(each for each in attempts if each > 60))]) <= 3
    assert gaps[-1] > 20
    retries.add(600.0, read=True)
    assert retries.is_due(600.25)
