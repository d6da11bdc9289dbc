"""A search knows which share of the requests at its server are not its own."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.analysis.cells.attempts import RESUMED
from servetop.core.events import EngineSample, Note, Severity
from servetop.core.tick import ClientTick, Tick
from servetop.run.search.other_requests import OtherRequests


def tick(second: int, requests: float | None, tokens: float | None) -> Tick:
    sample = EngineSample(
        scrape_start=second,
        scrape_end=second + 0.1,
        requests_finished_total=requests,
        generation_tokens_total=tokens,
    )
    return Tick(client=ClientTick(index=4 * second), engine=sample)


def share(requests: float, tokens: float, *notes: Note, in_flight: int = 0) -> float | None:
    """The share of others where a search ended 50 requests of 10 tokens in 20 s, and the server counted these."""
    found = OtherRequests()
    found.add([tick(0, 1000.0, 5000.0), tick(10, 1000.0, 5000.0), tick(20, 1000.0 + requests, 5000.0 + tokens)], notes)
    found.add_ended(np.linspace(1, 19, 50), np.full(50, 10.0))
    return found.share(in_flight=in_flight)


def test_requests_and_tokens_beyond_the_own_are_those_of_others() -> None:
    assert share(100.0, 1000.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("requests", "tokens"),
    [(50.0, 500.0), (60.0, 600.0), (150.0, 500.0), (50.0, 1500.0), (40.0, 300.0)],
    ids=["own", "few", "counted in parts", "more tokens", "not all counted"],
)
def test_one_count_alone_or_a_small_excess_shows_no_others(requests: float, tokens: float) -> None:
    assert share(requests, tokens) is None


def test_tokens_of_requests_in_flight_may_be_own() -> None:
    assert share(90.0, 900.0) is not None
    assert share(90.0, 900.0, in_flight=20) is None


def test_what_the_server_did_between_two_sessions_does_not_count() -> None:
    seam = Note(at=12.0, severity=Severity.INFO, source=RESUMED, text="")
    assert share(1000.0, 9000.0, seam) is None


def test_a_restart_of_the_server_is_no_request() -> None:
    found = OtherRequests()
    found.add([tick(0, 1000.0, 5000.0), tick(1, 0.0, 0.0), tick(2, 100.0, 900.0)], ())
    assert found.share(in_flight=0) == 1.0
    found.add_ended(np.full(100, 1.5), np.full(100, 9.0))
    assert found.share(in_flight=0) is None


def test_a_server_without_these_counters_shows_nothing() -> None:
    found = OtherRequests()
    found.add([tick(0, None, 5.0), tick(9, None, 9000.0)], ())
    assert found.share(in_flight=0) is None
