"""The delay of a closed loop after errors doubles up to a second and is reset by a token."""

from types import SimpleNamespace
from typing import Any

import pytest

from servetop.core.events import RequestStatus
from servetop.loadgen.sender.backoff import Backoff


def ended(status: RequestStatus, *, first_token_at: float | None = None) -> Any:
    return SimpleNamespace(status=status, first_token_at=first_token_at)


FAILED = ended(RequestStatus.ERROR)


def test_the_delay_doubles_with_each_error_up_to_a_second() -> None:
    backoff, delays = Backoff(), []
    for number in range(10):
        at = 100.0 * number
        backoff.update(FAILED, at)
        delays.append(backoff.until - at)
    assert delays[:7] == pytest.approx([0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64])
    assert delays[7:] == pytest.approx([1.0] * 3)


def test_reaching_the_longest_delay_is_reported_once() -> None:
    backoff = Backoff()
    assert [backoff.update(FAILED, float(number)) for number in range(10)].count(True) == 1


@pytest.mark.parametrize(
    "request_state",
    [ended(RequestStatus.OK, first_token_at=1.0), ended(RequestStatus.ERROR, first_token_at=1.0)],
    ids=["ok", "error after a token"],
)
def test_a_token_resets_the_delay(request_state: Any) -> None:
    backoff = Backoff()
    for at in (1.0, 2.0, 3.0):
        backoff.update(FAILED, at)
    backoff.update(request_state, 4.0)
    backoff.update(FAILED, 10.0)
    assert backoff.until == pytest.approx(10.01)
