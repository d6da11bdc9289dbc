"""Steady-state detection on queues with known behaviour, and on arbitrary ticks."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.analysis.series.tick_columns import TickColumns
from servetop.analysis.trust.steady_state import MIN_TICKS, SteadyWindow, mser, shows_trend, steady_window
from servetop.core.arrays import FloatArray
from servetop.core.tick import TICK_SECONDS, ClientTick, LoadGauges, Tick

DRAIN = 20.0
"""Seconds after the load that the columns go on."""


def columns(due: FloatArray, done: FloatArray, **fields: Any) -> TickColumns:
    """Ticks of requests with given due and done times, each with 100 tokens at its end."""
    ends = np.arange(1, int((due[-1] + DRAIN) / TICK_SECONDS) + 1) * TICK_SECONDS
    edges = np.concatenate([[0.0], ends])
    completed = np.histogram(done, edges)[0].astype(np.float64)
    in_system = np.searchsorted(np.sort(due), ends, side="right") - np.searchsorted(np.sort(done), ends, side="right")
    values = {
        "start": ends - TICK_SECONDS,
        "in_system": in_system.astype(np.float64),
        "output_tokens": 100 * completed,
        "completed": completed,
        "due": np.histogram(due, edges)[0].astype(np.float64),
        "request_rate": np.full(ends.size, 8.0),
        "max_concurrency": np.full(ends.size, np.nan),
        "paused": np.zeros(ends.size, dtype=np.bool_),
    }
    return TickColumns(**{**values, **fields})


def plain(count: int, **fields: Any) -> TickColumns:
    """`count` ticks of a load of 8 requests/s, with the given columns."""
    values: dict[str, Any] = dict.fromkeys(("in_system", "output_tokens", "completed", "due"), np.zeros(count))
    values |= {"start": np.arange(count) * TICK_SECONDS, "request_rate": np.full(count, 8.0)}
    values |= {"max_concurrency": np.full(count, np.nan), "paused": np.zeros(count, dtype=np.bool_)}
    return TickColumns(**{**values, **fields})


def poisson(rate: float, *, seconds: float, seed: int) -> FloatArray:
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, size=int(3 * rate * seconds)))
    return arrivals[arrivals < seconds]


def queue_finish_times(due: FloatArray, *, rate: float, seed: int) -> FloatArray:
    """The times at which an M/M/1 queue finishes each request."""
    service = np.random.default_rng(seed + 1).exponential(1 / rate, size=due.size)
    done = np.empty_like(due)
    free = 0.0
    for number, at in enumerate(due):
        done[number] = free = max(free, at) + service[number]
    return done


@pytest.mark.parametrize("seed", range(8))
def test_a_noisy_queue_at_half_its_capacity_is_steady(seed: int) -> None:
    due = poisson(8.0, seconds=60.0, seed=seed)
    window = steady_window(columns(due, queue_finish_times(due, rate=16.0, seed=seed)))
    assert window.reason == ""
    assert window.seconds is not None
    assert window.seconds >= 30.0
    assert window.end is not None
    assert window.end <= 60.0


@pytest.mark.parametrize("seed", range(8))
def test_a_queue_above_its_capacity_has_no_steady_state_but_a_growth_rate(seed: int) -> None:
    due = poisson(15.0, seconds=60.0, seed=seed)
    window = steady_window(columns(due, queue_finish_times(due, rate=10.0, seed=seed)))
    assert window.start is None
    assert window.reason.startswith("in flight grows by ")
    assert window.reason.endswith(" requests/s: more requests arrive than complete")
    growth = float(window.reason.split()[4])
    assert 3.0 < growth < 7.0  # 15 come and 10 go


def test_requests_that_the_clients_limit_holds_back_are_not_called_in_flight() -> None:
    due = poisson(15.0, seconds=60.0, seed=1)
    load = columns(due, queue_finish_times(due, rate=10.0, seed=1))
    limited = dataclasses.replace(load, max_concurrency=np.full(load.size, 4.0))
    reason = steady_window(limited).reason
    assert reason.startswith("requests queued at the client grow by ")
    assert reason.endswith("the limit of 4 in flight holds them back")
    assert shows_trend(reason)
    wide = dataclasses.replace(load, max_concurrency=np.full(load.size, 5_000.0))
    assert steady_window(wide).reason.startswith("in flight grows by ")


def evenly_spaced(rate: float, *, seconds: float, stay: float) -> tuple[FloatArray, FloatArray]:
    """Evenly spaced requests that all take `stay` seconds."""
    due = np.arange(0.0, seconds, 1 / rate)
    return due, due + stay


def test_initial_transient_and_drain_are_excluded() -> None:
    due, done = evenly_spaced(10.0, seconds=60.0, stay=5.0)
    window = steady_window(columns(due, done))
    assert window.start is not None
    assert window.end is not None
    assert 4.5 <= window.start <= 7.0  # nothing ends in the first 5 s
    assert 59.0 <= window.end <= 60.0  # the last request is due at 59.9 s, the last one ends at 64.9 s


def test_a_cool_down_is_excluded_from_the_end() -> None:
    due, done = evenly_spaced(10.0, seconds=60.0, stay=1.0)
    window = steady_window(columns(due, done), cooldown=10.0)
    assert window.end is not None
    assert 48.0 <= window.end <= 50.0


@pytest.mark.parametrize(("change_at", "start", "end"), [(20.0, 20.0, 60.0), (42.0, 0.0, 42.0)])
def test_after_a_change_of_level_the_longer_part_is_the_window(change_at: float, start: float, end: float) -> None:
    due = poisson(16.0, seconds=60.0, seed=3)
    window = steady_window(columns(due, due + np.where(due < change_at, 1.0, 4.0)))
    assert window.start is not None
    assert window.end is not None
    assert start - 0.5 <= window.start <= start + 12.0
    assert end - 5.0 <= window.end <= end + 2.5  # to a block, 1/24 of the load


def test_a_closed_loop_is_steady_when_its_throughput_is() -> None:
    count = 240
    ones = np.ones(count)
    closed = plain(
        count,
        in_system=64 * ones,
        output_tokens=np.where(np.arange(count) < 20, 0.0, 500 + 50 * np.sin(np.arange(count))),
        completed=8 * ones,
        due=8 * ones,
        request_rate=np.inf * ones,
        max_concurrency=64 * ones,
    )
    window = steady_window(closed)
    assert window.start == pytest.approx(5.0, abs=1.3)
    assert window.end == 60.0
    slower = dataclasses.replace(closed, output_tokens=np.linspace(1000.0, 500.0, count))
    assert steady_window(slower).reason == "output tokens/s falls by 37% of its mean over the second half of the load"


def test_a_ramped_stage_has_no_steady_state() -> None:
    due, done = evenly_spaced(10.0, seconds=60.0, stay=0.5)
    size = columns(due, done).size
    window = steady_window(columns(due, done, request_rate=np.linspace(5.0, 15.0, size)))
    assert window == SteadyWindow(reason="the load was ramped or kept changing")


def test_a_constant_load_that_ends_within_its_last_tick_was_not_ramped() -> None:
    due, done = evenly_spaced(8.0, seconds=10.0, stay=0.5)
    ticks = columns(due, done)
    over = np.where(ticks.start + TICK_SECONDS >= 10.0, np.nan, 8.0)
    reason = "the constant load lasted 9.75 s: at least 10 s are needed"
    assert steady_window(dataclasses.replace(ticks, request_rate=over)).reason == reason


def test_a_load_with_pauses_reports_its_longest_part() -> None:
    due, done = evenly_spaced(10.0, seconds=60.0, stay=0.5)
    ticks = columns(due, done)
    paused = (ticks.start % 20.0) >= 15.0
    reason = "the longest part without a pause lasted 15 s: at least 30 s are needed"
    assert steady_window(dataclasses.replace(ticks, paused=paused)).reason == reason


def test_only_the_longest_constant_load_is_searched() -> None:
    due, done = evenly_spaced(10.0, seconds=60.0, stay=0.5)
    size = columns(due, done).size
    rate = np.where(np.arange(size) * TICK_SECONDS < 22.0, 20.0, 10.0)  # a key was pressed at 22 s
    window = steady_window(columns(due, done, request_rate=rate))
    assert window.start is not None
    assert window.start >= 22.0


@pytest.mark.parametrize(
    ("seconds", "stay", "reason"),
    [
        (5.0, 1.0, "the load lasted 5 s: at least 10 s are needed"),
        (20.0, 15.0, "the load lasted 20 s, but a request takes"),
        (20.0, 30.0, "no request was completed in the second half of the load"),
    ],
)
def test_a_stage_that_is_too_short_has_a_reason(seconds: float, stay: float, reason: str) -> None:
    window = steady_window(columns(*evenly_spaced(10.0, seconds=seconds, stay=stay)))
    assert window.start is None
    assert window.reason.startswith(reason)


def test_a_stage_without_requests_has_no_steady_state() -> None:
    idle = TickColumns.of([Tick(client=ClientTick(index=index)) for index in range(100)])
    assert steady_window(idle) == SteadyWindow(reason="no request was due")
    assert steady_window(idle.part(0, 0)) == SteadyWindow(reason="no request was due")


def test_requests_queued_at_the_client_are_in_the_system() -> None:
    gauges = LoadGauges(in_flight=16, queued=4, request_rate=8.0, max_concurrency=16)
    found = TickColumns.of([Tick(client=ClientTick(index=3, gauges=gauges, due=2, ok=1, errors=1, cancelled=1))])
    assert (found.start[0], found.in_system[0], found.completed[0], found.due[0]) == (0.75, 20.0, 3.0, 2.0)


def test_mser_truncates_batches_of_five_that_deviate_from_the_mean() -> None:
    values = np.concatenate([np.zeros(10), np.tile([9.0, 11.0], 45)])
    assert mser(values, most=50) == 10
    assert mser(values, most=5) == 5
    assert mser(values, most=0) == 0
    assert mser(np.full(100, 7.0), most=50) == 0


amounts = st.integers(min_value=0, max_value=40)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(amounts, amounts, amounts, amounts), min_size=MIN_TICKS, max_size=150), st.booleans())
def test_any_window_lies_within_the_load_and_does_not_depend_on_units(
    rows: list[tuple[int, int, int, int]], closed: bool
) -> None:
    in_system, tokens, completed, due = np.array(rows, dtype=np.float64).T
    count = len(rows)
    ticks = plain(
        count,
        in_system=in_system,
        output_tokens=tokens,
        completed=completed,
        due=due,
        request_rate=np.full(count, np.inf if closed else 8.0),
    )
    window = steady_window(ticks)
    assert steady_window(ticks) == window
    assert (window.start is None) == (window.end is None) == bool(window.reason)
    if window.start is not None and window.end is not None:
        times = ticks.start[due > 0]
        assert times[0] <= window.start < window.end <= times[-1] + TICK_SECONDS
        assert window.end - window.start >= MIN_TICKS * TICK_SECONDS
    names = ("in_system", "output_tokens", "completed", "due")
    larger = dataclasses.replace(ticks, **{name: 8 * getattr(ticks, name) for name in names})
    scaled = steady_window(larger)
    assert (scaled.start, scaled.end) == (window.start, window.end)
