"""Open loops, closed loops and bursts are recognised by when their requests were sent and ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from servetop.core.events import RequestRecord, RequestStatus
from servetop.run.imports.loop_kind import is_open_loop
from servetop.run.imports.placed_times import closed_loop_starts
from servetop.run.imports.result_file import read_results

RESULTS = Path(__file__).parents[2] / "corpus" / "results"
RANDOM = np.random.default_rng(7)
DURATIONS = RANDOM.gamma(4.0, 0.25, 200)


def requests(starts: Sequence[float], durations: Sequence[float]) -> list[RequestRecord]:
    return [
        RequestRecord(
            id=number, stage=0, due=start, sent=start, done_at=start + length, status=RequestStatus.OK,
            prompt_tokens=1, output_tokens=1, chunk_times=np.empty(0), chunk_tokens=np.empty(0, np.int64),
        )
        for number, (start, length) in enumerate(zip(starts, durations, strict=True))
    ]  # fmt: skip


@pytest.mark.parametrize("places", [1, 4, 32])
def test_a_closed_loop_sends_promptly_when_one_place_is_free(places: int) -> None:
    lengths = DURATIONS.tolist()
    starts = closed_loop_starts(lengths, places)
    assert not is_open_loop(requests(starts, lengths))
    late = [start + pause for start, pause in zip(starts, RANDOM.uniform(0.0, 1e-3, len(starts)), strict=True)]
    assert not is_open_loop(requests(sorted(late), lengths))


@pytest.mark.parametrize("rate", [0.1, 2.0, 30.0])
def test_poisson_arrivals_are_an_open_loop(rate: float) -> None:
    starts = np.cumsum(RANDOM.exponential(1 / rate, DURATIONS.size)).tolist()
    assert is_open_loop(requests(starts, DURATIONS.tolist()))


def test_slow_even_arrivals_are_an_open_loop_although_never_two_are_in_flight() -> None:
    assert is_open_loop(requests(np.arange(50.0).tolist(), [0.5] * 50))


def test_requests_that_were_all_sent_at_once_are_no_open_loop() -> None:
    assert not is_open_loop(requests([0.0] * 50, DURATIONS[:50].tolist()))
    assert not is_open_loop([])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vllm-rate.json", True),
        ("inference_perf/per_request_lifecycle_metrics.json", True),
        ("vllm-closed-loop.json", False),
    ],
)
def test_results_of_other_tools(name: str, expected: bool) -> None:
    (result,) = read_results(RESULTS / name)
    assert is_open_loop(result.requests) is expected
