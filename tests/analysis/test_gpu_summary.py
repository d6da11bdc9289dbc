"""The GPUs at one time of a run, from ticks."""

from __future__ import annotations

import math

import pytest

from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import GpuSample
from servetop.core.tick import ClientTick, Tick


def history(*, readings: int, ticks: int = 40, power: float | None = 400.0) -> TickHistory:
    """50 tokens per tick; the first `readings` ticks have GPU samples."""
    cards = [(GpuSample(at=0.25 * index, index=0, name="H200", power=power),) for index in range(readings)]
    return TickHistory(
        Tick(client=ClientTick(index=index, output_tokens=50), gpus=cards[index] if index < readings else ())
        for index in range(ticks)
    )


def test_the_energy_of_a_token_is_power_over_tokens_per_second() -> None:
    assert live_stats(history(readings=40), 10.0).joules_per_token == pytest.approx(400.0 / 200.0)


def test_the_newest_gpu_samples_are_valid_for_two_seconds() -> None:
    run = history(readings=20)
    assert [gpu.at for gpu in live_stats(run, 6.9).gpus] == [4.75]
    assert live_stats(run, 7.25).gpus == ()


@pytest.mark.parametrize(("readings", "power"), [(0, 400.0), (1, 400.0), (40, None)])
def test_metrics_that_no_gpu_exports_are_unknown(readings: int, power: float | None) -> None:
    assert math.isnan(live_stats(history(readings=readings, power=power), 10.0).joules_per_token)
