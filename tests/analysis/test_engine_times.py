"""The client's mean latencies beside the engine's own of the same requests."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from servetop.analysis.trust.consistency import EngineCounts, increase
from servetop.analysis.trust.engine_times import TOTALS, ClientTimes, EngineTimes, engine_times
from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick, Tick

SECONDS = 20
STEP = 0.25


def by(at: float) -> float:
    """Requests counted by a time: four per second."""
    return 4.0 * max(0.0, min(at, SECONDS))


def client(ttft: float = 0.046) -> ClientTimes:
    ticks = [
        Tick(client=ClientTick(index=index, ttft=LogHistogram.of([ttft]), e2el=LogHistogram.of([0.3])))
        for index in range(int(SECONDS / STEP))
    ]
    return ClientTimes.of(ticks)


def engine(
    *, ttft: float = 0.007, counted: Callable[[float], float] = by, stop: float = 15.0, before: float = 33.0
) -> EngineCounts:
    """Scrapes from 5 s on of an engine that had served some requests before."""
    times = np.arange(5.0, stop + STEP, STEP)
    requests = np.array([counted(at) for at in times])
    totals = {"first_token_seconds_total": ttft * (before + requests), "first_tokens_total": before + requests}
    unknown = np.full(times.shape, math.nan)
    sums = {name: increase(totals.get(name, unknown)) for pair in TOTALS.values() for name in pair}
    return EngineCounts(starts=times - 0.002, ends=times + 0.002, requests=unknown, generated=unknown, sums=sums)


def test_means_of_the_same_requests_are_compared() -> None:
    times = engine_times(engine(), client())
    assert (times.ttft.client, times.ttft.engine) == pytest.approx((0.046, 0.007))
    assert times.ttft.excess == pytest.approx(0.039)
    assert times.round_trip == pytest.approx(0.004)


def test_what_the_engine_does_not_export_is_unknown() -> None:
    times = engine_times(engine(), client())
    assert math.isnan(times.e2el.engine)
    assert math.isnan(times.tpot.excess)


@pytest.mark.parametrize(
    ("counted", "known"),
    [
        (by, True),
        (lambda at: 1.04 * by(at), True),
        (lambda at: 1.2 * by(at), False),
        (lambda at: 0.5 * by(at), False),
        (lambda _: 0.0, False),
    ],
    ids=["equal", "at the edges", "another client", "not all reach it", "none"],
)
def test_times_are_compared_only_where_the_counts_agree(counted: Callable[[float], float], known: bool) -> None:
    times = engine_times(engine(counted=counted), client())
    assert math.isnan(times.ttft.excess) is not known


def test_few_requests_are_not_compared() -> None:
    assert math.isnan(engine_times(engine(stop=7.0), client()).ttft.excess)


def test_a_restarted_engine_counts_from_0_again() -> None:
    restarted = engine(counted=lambda at: by(at) if at < 10.0 else by(at) - by(10.0), before=0.0)
    assert engine_times(restarted, client()).ttft.engine == pytest.approx(0.007, rel=0.1)


def test_without_scrapes_or_ticks_nothing_is_compared() -> None:
    nothing = engine().part(np.zeros(engine().times.shape, dtype=np.bool_))
    for found in (engine_times(nothing, client()), engine_times(engine(), ClientTimes.of([]))):
        assert math.isnan(found.ttft.excess)
        assert math.isnan(found.round_trip)
    assert math.isnan(EngineTimes().ttft.excess)
