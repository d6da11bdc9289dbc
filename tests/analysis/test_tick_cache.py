"""A history with evicted ticks gives the same results as one with all ticks in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from servetop.analysis.live_stats import LiveStats, live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.series.window_cache import SLIDING
from servetop.core.events import EngineSample
from servetop.core.histogram import LogHistogram
from servetop.core.merged.tick_rows import MergedTick, TickRow, TickRows
from servetop.core.tick import TICK_SECONDS, ClientTick, LoadGauges, Tick

KEEP = 100
MISSING = range(300, 320)


def tick_of(index: int) -> Tick:
    rng = np.random.default_rng(index)
    names = (*SLIDING, "slip", "tpot")
    latencies: dict[str, Any] = {name: LogHistogram.of(rng.lognormal(-3, 1, size=index % 4)) for name in names}
    sample = EngineSample(
        scrape_start=index / 4 - 0.02, scrape_end=index / 4, kv_usage=index % 50 / 50, preemptions_total=index // 9
    )
    gauges = LoadGauges(stage=index // 250, request_rate=4.0, in_flight=index % 7, max_concurrency=9)
    client = ClientTick(
        index=index, gauges=gauges, due=2, sent=2, ok=index % 3, output_tokens=index, loop_lag=latencies["slip"],
        **latencies,
    )  # fmt: skip
    return Tick(client=client, engine=sample if index % 5 else None)


TICKS = [tick_of(index) for index in range(1000) if index not in MISSING]


class Recording:
    """Reads ticks again, and counts how many."""

    def __init__(self) -> None:
        self.read = 0

    def past_ticks(self, first: int, last: int) -> Sequence[Tick]:
        found = [tick for tick in TICKS if first <= tick.index <= last]
        self.read += len(found)
        return found


def history_of(recording: Recording, *, steps: int) -> TickHistory:
    """A history to which `steps` ticks at a time were appended."""
    history = TickHistory(read=recording.past_ticks)
    for first in range(0, len(TICKS), steps):
        history.extend(TICKS[first : first + steps])
        history.evict(keep=KEEP)
    return history


def same(one: LiveStats, other: LiveStats) -> None:
    np.testing.assert_equal(dataclasses.asdict(one), dataclasses.asdict(other))


@pytest.mark.parametrize("steps", [1, 3, 700])
@pytest.mark.parametrize("span", [30.0, 120.0, 249.0])
def test_evicted_ticks_give_the_same_statistics_at_any_time(steps: int, span: float) -> None:
    whole, short = TickHistory(TICKS), history_of(Recording(), steps=steps)
    for at in (3.0, 60.1, 77.0, 118.3, 200.0, 249.0, 250.0):
        same(live_stats(short, at, span=span), live_stats(whole, at, span=span))
    for start, stop in ((0, len(TICKS)), (70, 900), (130, 140), (64, 128)):
        for name in ("ttft", "slip", "tpot"):
            assert short.histogram(name, start=start, stop=stop) == whole.histogram(name, start=start, stop=stop)


def test_ticks_in_memory_do_not_grow_with_the_run() -> None:
    recording = Recording()
    history = TickHistory(read=recording.past_ticks)
    most = 0
    for tick in TICKS:
        history.append(tick)
        history.evict(keep=KEEP)
        most = max(most, len(history.ticks) - history.ticks.evicted)
    assert KEEP <= most < 2 * KEEP
    assert len(history) == len(history.column("sent")) == len(TICKS)


def test_following_a_run_reads_no_evicted_ticks() -> None:
    recording = Recording()
    history = TickHistory(read=recording.past_ticks)
    for tick in TICKS:
        history.append(tick)
        history.evict(keep=KEEP)
        if tick.index % 16 == 15:
            live_stats(history, tick.end, span=KEEP * TICK_SECONDS / 2)
            live_stats(history, tick.end, span=200.0)
    assert recording.read == 0


def test_each_tick_has_its_position_in_memory_or_evicted() -> None:
    ticks = history_of(Recording(), steps=7).ticks
    assert [tick.index for tick in ticks] == [tick.index for tick in TICKS]
    assert [tick.index for tick in ticks[50:-50]] == [tick.index for tick in TICKS[50:-50]]
    assert ticks[-1].index == TICKS[-1].index
    with pytest.raises(IndexError):
        ticks[len(TICKS)]


def test_unreadable_evicted_ticks_keep_counts_and_long_sums() -> None:
    history = TickHistory(read=lambda first, last: [])
    for tick in TICKS:
        history.append(tick)
        history.evict(keep=KEEP)
    known = TickHistory(TICKS)
    assert live_stats(history, 60.0).totals == live_stats(known, 60.0).totals
    assert np.isnan(live_stats(history, 60.0).trust.loop_lag_p99)
    assert history.histogram("ttft", start=0, stop=640) == known.histogram("ttft", start=0, stop=640)


def test_without_a_read_function_no_ticks_are_evicted() -> None:
    history = TickHistory(TICKS)
    history.evict(keep=KEEP)
    assert history.ticks.evicted == 0


def test_merged_rows_are_kept_and_the_ticks_after_them_are_evicted() -> None:
    """Positions, sums and percentiles are the same with and without eviction, across the last merged row."""
    before = [MergedTick(tick=tick_of(index), count=40, engine=None) for index in range(39, 400, 40)]
    rows: list[TickRow] = [*before, *(tick_of(index) for index in range(400, 1000))]
    read: list[tuple[int, int]] = []

    def past(first: int, last: int) -> Sequence[Tick]:
        read.append((first, last))
        return [tick_of(index) for index in range(first, last + 1)]

    whole, evicting = TickHistory(TickRows(rows)), TickHistory(read=past)
    for first in range(0, len(rows), 100):
        evicting.extend(TickRows(rows[first : first + 100]))
        evicting.evict(keep=KEEP)
    assert evicting.ticks.kept == 400
    assert len(evicting) == len(whole) == 1000
    assert evicting.ticks.evicted >= 850
    for start, stop in ((0, 1000), (100, 300), (390, 430), (400, 440), (0, 700), (500, 540), (950, 990)):
        ours, theirs = (each.histogram("ttft", start=start, stop=stop) for each in (evicting, whole))
        assert ours.count == theirs.count
        for each in SLIDING:
            np.testing.assert_equal(
                evicting.percentiles(each, start=start, stop=stop), whole.percentiles(each, start=start, stop=stop)
            )
    assert [tick.index for tick in evicting.ticks[380:460]] == [*range(380, 460)]
    assert min(first for first, _ in read) >= 400
