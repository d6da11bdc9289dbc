"""Requests in flight: their number, and the request timeout in order of submission."""

from dataclasses import dataclass
from typing import Any, cast

import pytest

from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.loadgen.request.chunk_log import ChunkLog
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.sender.in_flight import InFlightRequests


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """What is read of a request; a key of the dictionary by identity."""

    id: int
    stage: int = 1
    due_at: float = 4.0
    sent: float = 4.5
    first_token_at: float | None
    prompt_tokens: int = 9
    chunks: ChunkLog


def requests(count: int) -> list[RequestState]:
    return [cast("RequestState", object()) for _ in range(count)]


def test_a_request_is_in_flight_until_it_is_removed() -> None:
    in_flight = InFlightRequests()
    first, second = requests(2)
    in_flight.add(first, 1.0)
    in_flight.add(second, 1.1)
    assert [in_flight.remove(first), in_flight.remove(first)] == [True, False]
    assert (in_flight.count, in_flight.empty) == (1, False)


@pytest.mark.parametrize(("at", "expected"), [(10.9, 0), (11.0, 1), (12.5, 2), (99.0, 3)])
def test_requests_time_out_in_order_of_submission(at: float, expected: int) -> None:
    in_flight: Any = InFlightRequests()
    submitted = requests(3)
    for number, request in enumerate(submitted):
        in_flight.add(request, 1.0 + number)
    assert list(in_flight.overdue(at, timeout=10.0)) == submitted[:expected]
    assert in_flight.snapshot() == tuple(submitted[expected:])


def test_the_requests_submitted_last_are_reported_as_known() -> None:
    in_flight: Any = InFlightRequests()
    for number in range(3):
        chunks = ChunkLog()
        for token in range(number):
            chunks.add(5.0 + token, 2)
        first = 5.0 if number else None
        in_flight.add(Known(id=number, first_token_at=first, chunks=chunks), 4.5)
    assert in_flight.newest(2, 7.0) == (
        RequestInFlight(at=7.0, id=1, stage=1, due=4.0, sent=4.5, first_token_at=5.0, last_token_at=5.0,
                        prompt_tokens=9, output_tokens=2),
        RequestInFlight(at=7.0, id=2, stage=1, due=4.0, sent=4.5, first_token_at=5.0, last_token_at=6.0,
                        prompt_tokens=9, output_tokens=4),
    )  # fmt: skip
    assert [each.last_token_at for each in in_flight.newest(9, 7.0)] == [None, 5.0, 6.0]
