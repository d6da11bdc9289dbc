"""Ticks in bins: rates are per second, and a spike of one tick is kept as the highest value of its bin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import EngineSample, GpuSample
from servetop.core.tick import Tick
from servetop.reports.page.time_columns import time_columns


def page_at(end: float, waiting: float) -> EngineSample:
    return EngineSample(scrape_start=end - 0.01, scrape_end=end, running=4.0, waiting=waiting)


def history(make_tick: Callable[..., Tick], *, ticks: int, spike_at: int) -> TickHistory:
    return TickHistory(
        make_tick(
            index,
            engine=page_at((index + 1) * 0.25, 900.0 if index == spike_at else 1.0),
            sent=3,
            ok=2,
            output_tokens=50,
            ttfts=[0.1],
        )
        for index in range(ticks)
    )


def test_rates_are_per_second_and_gauges_keep_their_extremes(make_tick: Callable[..., Tick]) -> None:
    found = time_columns(history(make_tick, ticks=40, spike_at=17))
    assert found.seconds == 1.0
    assert found.columns["at"].tolist() == [0.5 + second for second in range(10)]
    assert set(found.columns["sent"].tolist()) == {12.0}
    assert set(found.columns["output_tokens"].tolist()) == {200.0}
    assert found.columns["waiting_high"].tolist() == [1.0] * 4 + [900.0] + [1.0] * 5
    assert found.columns["waiting"][4] == (900 + 3) / 4
    assert found.columns["waiting_low"].max() == 1.0
    np.testing.assert_allclose(found.columns["ttft_p99"], 0.1, rtol=0.01)


def test_a_long_run_has_longer_bins_and_keeps_its_spike(make_tick: Callable[..., Tick]) -> None:
    found = time_columns(history(make_tick, ticks=2_000, spike_at=1_234), most=50)
    assert len(found.columns["at"]) <= 51
    assert found.columns["waiting_high"].max() == 900.0
    assert found.columns["sent"][3] == 12.0


def test_ticks_before_the_load_are_left_out(make_tick: Callable[..., Tick]) -> None:
    found = time_columns(history(make_tick, ticks=40, spike_at=0), since=4.0)
    assert found.columns["at"].tolist() == [4.5 + second for second in range(6)]


def test_what_the_engine_does_not_export_is_not_a_column_of_the_page(make_tick: Callable[..., Tick]) -> None:
    found = time_columns(TickHistory(make_tick(index, sent=1) for index in range(8)))
    assert "waiting" not in found.known
    assert "kv_usage" not in found.as_data()["columns"]  # type: ignore[operator]
    assert "sent" in found.known


def test_devices_are_averaged_or_added(make_tick: Callable[..., Tick]) -> None:
    samples = [
        GpuSample(at=0.2 + second, index=device, name="H200", utilisation=0.5 + 0.5 * device, power=300.0)
        for second in range(2)
        for device in range(2)
    ]
    found = time_columns(history(make_tick, ticks=8, spike_at=0), samples)
    assert found.columns["gpu_utilisation"].tolist() == [0.75, 0.75]
    assert found.columns["gpu_power"].tolist() == [600.0, 600.0]
    assert "gpu_memory" not in found.known


def test_a_run_without_ticks_has_no_columns() -> None:
    assert time_columns(TickHistory()).known == frozenset()
