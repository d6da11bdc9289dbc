"""Saturation is reported when the worst sender exceeds a limit for three ticks, and then not again for a while."""

from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick
from servetop.loadgen.worker.saturation import SATURATED_TICKS, Saturation


def tick(*, lag: float = 0.001, slip: float = 0.001, cpu: float = 0.1) -> ClientTick:
    return ClientTick(index=0, loop_lag=LogHistogram.of([lag]), slip=LogHistogram.of([slip]), cpu_seconds=cpu)


def test_an_idle_pool_is_not_saturated() -> None:
    saturation = Saturation()
    assert [saturation.update({0: tick(), 1: tick()}) for _ in range(10)] == [None] * 10


def test_the_worst_sender_is_reported_after_three_saturated_ticks() -> None:
    saturation = Saturation()
    ticks = {0: tick(), 1: tick(lag=0.5, slip=0.5, cpu=0.2)}
    reports = [saturation.update(ticks) for _ in range(SATURATED_TICKS)]
    assert reports[:-1] == [None] * (SATURATED_TICKS - 1)
    text = reports[-1]
    assert text is not None
    assert text.startswith("sender 1 lags 5")
    assert text.endswith("using 80% of a CPU")


def test_a_good_tick_restarts_the_count() -> None:
    saturation = Saturation()
    busy, good = {0: tick(lag=0.5)}, {0: tick()}
    assert [saturation.update(each) for each in (busy, busy, good, busy, busy)] == [None] * 5


def test_saturation_is_not_reported_again_at_once() -> None:
    saturation = Saturation()
    reports = [saturation.update({0: tick(lag=0.5)}) for _ in range(2 * SATURATED_TICKS + 2)]
    assert [report is not None for report in reports].count(True) == 1
