"""Smoothed rates of charts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.smoothing import smoothed_rate
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.tick import ClientTick, LoadGauges, Tick


def history(counts: list[int]) -> TickHistory:
    return TickHistory([Tick(client=ClientTick(index=index, ok=count)) for index, count in enumerate(counts)])


def test_a_rate_is_the_mean_of_the_last_five_seconds_and_has_the_peak_of_its_seconds() -> None:
    bursts = [8, 0, 0, 0] * 15
    smoothed = smoothed_rate(history(bursts), "ok", bins=[(56, 60)], width=4)
    assert smoothed.mean.tolist() == [8.0]
    assert smoothed.peak.tolist() == [8.0]
    assert (smoothed.low.tolist(), smoothed.high.tolist()) == ([8.0], [8.0])


def test_a_burst_raises_the_peak_more_than_the_mean_and_leaves_the_range_after_fifteen_seconds() -> None:
    burst = [1] * 56 + [26, 26, 26, 26]
    smoothed = smoothed_rate(history(burst), "ok", bins=[(56, 60)], width=4)
    assert (smoothed.mean.tolist(), smoothed.peak.tolist()) == ([24.0], [104.0])
    assert (smoothed.low[0], smoothed.high[0]) == (0.0, pytest.approx(25.98, abs=0.01))
    later = smoothed_rate(history([*burst, *[1] * 36]), "ok", bins=[(92, 96)], width=4)
    assert (later.mean.tolist(), later.peak.tolist()) == ([4.0], [4.0])
    assert later.high[0] > 20
    gone = smoothed_rate(history([*burst, *[1] * 60]), "ok", bins=[(116, 120)], width=4)
    assert (gone.low.tolist(), gone.high.tolist()) == ([4.0], [4.0])


def test_time_before_the_run_counts_as_zero_and_bins_longer_than_the_window_are_means_of_their_own() -> None:
    early = smoothed_rate(history([5] * 8), "ok", bins=[(4, 8)], width=4)
    assert early.mean.tolist() == [8.0]
    long = smoothed_rate(history([1] * 40 + [3] * 40), "ok", bins=[(0, 40), (40, 80)], width=40)
    assert long.mean.tolist() == [4.0, 12.0]


def test_a_bin_without_ticks_is_a_gap() -> None:
    smoothed = smoothed_rate(history([1] * 8), "ok", bins=[(4, 8), (8, 8)], width=4)
    assert np.isnan(smoothed.mean).tolist() == [False, True]
    assert smoothed_rate(history([]), "ok", bins=[], width=4).mean.size == 0


@given(st.lists(st.integers(0, 50), min_size=1, max_size=120), st.integers(1, 40))
def test_neither_mean_nor_peak_exceeds_the_largest_tick(counts: list[int], width: int) -> None:
    bins = [(start, min(start + width, len(counts))) for start in range(0, len(counts), width)]
    smoothed = smoothed_rate(history(counts), "ok", bins=bins, width=width)
    assert smoothed.mean.size == len(bins)
    assert (np.maximum(smoothed.mean, smoothed.peak) <= 4 * max(counts) + 1e-9).all()
    assert (smoothed.low >= 0).all()
    assert (smoothed.low <= smoothed.high).all()


@pytest.mark.parametrize(
    ("gauges", "target", "limit"),
    [
        (LoadGauges(stage=0, request_rate=7.48), 7.48, None),
        (LoadGauges(stage=0, request_rate=7.48, paused=True), 0.0, None),
        (LoadGauges(stage=0, request_rate=float("inf"), max_concurrency=32), None, 32.0),
        (LoadGauges(stage=0), None, None),
    ],
)
def test_the_target_is_the_rate_in_force_or_the_concurrency_of_a_closed_loop(
    gauges: LoadGauges, target: float | None, limit: float | None
) -> None:
    series = live_stats(
        TickHistory([Tick(client=ClientTick(index=index, gauges=gauges)) for index in range(8)]), 2.0
    ).series
    for values, expected in ((series.target, target), (series.target_concurrency, limit)):
        assert np.isnan(values).all() if expected is None else set(values) == {expected}
