"""The delay of a closed loop after errors doubles up to a second and is reset by a token."""

import pytest

from servetop.workload.client.backoff import Backoff


def test_the_delay_doubles_with_each_error_up_to_a_second() -> None:
    backoff, delays = Backoff(), []
    for number in range(10):
        at = 100.0 * number
        backoff.ended(at, failed=True)
        delays.append(backoff.until - at)
    assert delays[:7] == pytest.approx([0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64])
    assert delays[7:] == pytest.approx([1.0] * 3)


def test_reaching_the_longest_delay_is_reported_once() -> None:
    backoff = Backoff()
    assert [backoff.ended(float(number), failed=True) for number in range(10)].count(True) == 1


def test_a_request_that_did_not_fail_resets_the_delay() -> None:
    backoff = Backoff()
    for at in (1.0, 2.0, 3.0):
        backoff.ended(at, failed=True)
    backoff.ended(4.0, failed=False)
    backoff.ended(10.0, failed=True)
    assert backoff.until == pytest.approx(10.01)
