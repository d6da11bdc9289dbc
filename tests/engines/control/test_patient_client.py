"""The timeout after a late response."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from servetop.engines.control.control_client import HttpResult, HttpResults, ServerClient
from servetop.engines.control.patient_client import BUSY_TIMEOUT, PatientClient


class RecordingClient:
    """A client with prepared results, which keeps the timeouts that it is called with."""

    def __init__(self, *results: HttpResult) -> None:
        self.results = list(results)
        self.timeouts: list[float] = []

    async def get_all(self, paths: Iterable[str], *, timeout: float) -> HttpResults:
        self.timeouts.append(timeout)
        result = self.results.pop(0)
        return dict.fromkeys(paths, result)


async def timeouts_of(*results: HttpResult, timeout: float = 1.0) -> list[float]:
    """The timeouts of one request more than there are results."""
    client = RecordingClient(*results, HttpResult(status=200))
    patient = PatientClient(cast(ServerClient, client), timeout=timeout)
    for _ in range(len(results) + 1):
        await patient.get_all(["/metrics"])
    return client.timeouts


async def test_the_request_after_a_late_response_waits_longer() -> None:
    late, done = HttpResult(late=True, error="no response within 1 s"), HttpResult(status=200)
    assert await timeouts_of(late, late, done) == [1.0, BUSY_TIMEOUT, BUSY_TIMEOUT, 1.0]


async def test_other_errors_leave_the_timeout_as_it_is() -> None:
    assert await timeouts_of(HttpResult(refused=True, error="connection refused"), HttpResult(status=500)) == [1.0] * 3


async def test_a_timeout_above_the_busy_one_is_never_shortened() -> None:
    assert await timeouts_of(HttpResult(late=True), timeout=30.0) == [30.0, 30.0]
