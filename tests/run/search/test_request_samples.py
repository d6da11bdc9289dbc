"""The samples of requests that succeeded, failed, were cancelled or are in flight."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from servetop.core.arrays import FloatArray
from servetop.recordings.read.request_chunks import Chunks
from servetop.run.search.objective_text import parse_objective
from servetop.run.search.request_samples import RequestTimes, request_samples

NAN = np.nan
MICROS = b"".join(value.to_bytes(4, "little") for value in (100_000, 20_000, 60_000))


def times(**changes: Any) -> RequestTimes:
    """One request sent at 0 s, whose three tokens arrive at 100, 120 and 180 ms."""
    values: dict[str, Any] = {
        "at": [0.18],
        "sent": [0.0],
        "first_token_at": [0.1],
        "first_output_at": [0.1],
        "later_tokens": [2.0],
        "ok": [True],
        "failed": [False],
        **changes,
    }
    chunks = Chunks.of([MICROS], [None])
    return RequestTimes(**{name: np.array(value) for name, value in values.items()}, chunks=chunks)


def of(requests: RequestTimes, text: str, goodput: dict[str, float] | None = None) -> tuple[float, float]:
    ((counted, missed, _, _),) = request_samples(requests, [parse_objective(text)], goodput=goodput or {})
    return as_float(counted), as_float(missed)


def mean_of(requests: RequestTimes, text: str) -> tuple[float, float]:
    """Samples and their sum in seconds."""
    ((counted, _, sums, _),) = request_samples(requests, [parse_objective(text)], goodput={})
    return as_float(counted), as_float(sums)


def level_of(requests: RequestTimes, text: str) -> float:
    """Logarithm of latency / limit."""
    ((_, _, _, levels),) = request_samples(requests, [parse_objective(text)], goodput={"ttft": 1.0})
    return as_float(levels)


def as_float(values: FloatArray) -> float:
    (value,) = values.tolist()
    return float(value)


def test_a_latency_is_one_sample() -> None:
    assert of(times(), "p99_ttft<100ms") == (1, 0)
    assert of(times(), "p99_ttft<99ms") == (1, 1)
    assert of(times(), "p99_e2el<150ms") == (1, 1)
    assert of(times(), "p99_tpot<50ms") == (1, 0)


def test_each_later_token_is_a_sample_of_itl() -> None:
    assert of(times(), "p99_itl<50ms") == (2, 1)
    assert of(times(later_tokens=[NAN]), "p99_itl<50ms") == (0, 0)


def test_a_failed_request_missed_everything() -> None:
    failed = times(ok=[False], failed=[True], first_token_at=[NAN], first_output_at=[NAN])
    for text in ("p99_ttft<10s", "p99_itl<10s", "error_rate<1%"):
        assert of(failed, text) == (1, 1)
    assert of(failed, "goodput>95%", {"ttft": 10.0}) == (1, 1)


def test_a_request_in_flight_counts_once_its_limit_has_passed() -> None:
    flying = times(ok=[False], first_token_at=[NAN], first_output_at=[NAN], at=[0.3], later_tokens=[NAN])
    assert of(flying, "p99_ttft<400ms") == (0, 0)
    assert of(flying, "p99_ttft<200ms") == (1, 1)
    assert of(flying, "p99_e2el<200ms") == (1, 1)
    assert of(flying, "p99_tpot<1ms") == (0, 0)
    assert of(flying, "error_rate<1%") == (0, 0)
    assert of(flying, "goodput>95%", {"ttft": 0.4}) == (0, 0)
    assert of(flying, "goodput>95%", {"ttft": 0.2}) == (1, 1)


def test_a_first_token_in_time_is_known_at_once() -> None:
    flying = times(ok=[False], at=[0.3], later_tokens=[NAN])
    assert of(flying, "p99_ttft<200ms") == (1, 0)
    assert of(flying, "p99_e2el<1s") == (0, 0)


def test_goodput_needs_all_objectives() -> None:
    assert of(times(), "goodput>95%", {"ttft": 0.2, "tpot": 0.05}) == (1, 0)
    assert of(times(), "goodput>95%", {"ttft": 0.2, "tpot": 0.03}) == (1, 1)


def test_a_mean_has_the_sum_of_its_samples() -> None:
    assert mean_of(times(), "mean_ttft<500ms") == (1, 0.1)
    assert mean_of(times(), "mean_e2el<500ms") == (1, 0.18)
    assert mean_of(times(), "mean_tpot<50ms") == pytest.approx((1, 0.04))
    assert mean_of(times(), "mean_itl<50ms") == pytest.approx((2, 0.08))


def test_a_failed_request_is_in_no_mean() -> None:
    failed = times(ok=[False], failed=[True])
    for text in ("mean_ttft<10s", "mean_itl<10s", "mean_e2el<10s"):
        assert mean_of(failed, text) == (0, 0)


def test_a_request_in_flight_adds_what_it_has_waited_once_the_limit_has_passed() -> None:
    flying = times(ok=[False], first_token_at=[NAN], first_output_at=[NAN], at=[0.3], later_tokens=[NAN])
    assert mean_of(flying, "mean_ttft<400ms") == (0, 0)
    assert mean_of(flying, "mean_ttft<200ms") == (1, 0.3)
    assert mean_of(flying, "mean_e2el<200ms") == (1, 0.3)
    assert mean_of(flying, "mean_tpot<1ms") == (0, 0)


def test_the_level_of_a_latency_is_relative_to_its_limit() -> None:
    assert level_of(times(), "p99_ttft<200ms") == pytest.approx(math.log(0.5))
    assert level_of(times(), "p99_e2el<90ms") == pytest.approx(math.log(2))
    flying = times(ok=[False], first_token_at=[NAN], first_output_at=[NAN], at=[0.3], later_tokens=[NAN])
    assert level_of(flying, "p99_ttft<600ms") == pytest.approx(math.log(0.5))
    failed = times(ok=[False], failed=[True], first_token_at=[NAN], first_output_at=[NAN])
    assert level_of(failed, "p99_ttft<600ms") > 4


@pytest.mark.parametrize("text", ["p99_itl<50ms", "mean_ttft<200ms", "error_rate<1%", "goodput>95%"])
def test_other_objectives_have_no_level(text: str) -> None:
    assert math.isnan(level_of(times(), text))


def test_a_time_per_output_token_is_unknown_until_the_end() -> None:
    flying = times(ok=[False], at=[0.3], later_tokens=[NAN])
    assert math.isnan(level_of(flying, "p99_tpot<50ms"))
