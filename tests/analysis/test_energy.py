"""Energy from the GPU's counter if it has one, else from its power; parts of a run add up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.energy import energy_between, energy_meters
from servetop.core.events import GpuSample


def readings(
    *, every: float = 0.25, count: int = 41, power: float | None = None, index: int = 0, rate: float | None = None
) -> list[GpuSample]:
    """A GPU with constant `power`, or a counter that grows from 5000 J by `rate` watts."""
    return [
        GpuSample(
            at=number * every,
            index=index,
            name="H200",
            power=power,
            energy=None if rate is None else 5000.0 + rate * number * every,
        )
        for number in range(count)
    ]


def joules(samples: Sequence[GpuSample], start: float, until: float) -> float:
    found = energy_between(energy_meters(samples), start, until)
    assert found is not None
    return found.joules


def test_the_energy_of_constant_power_is_power_times_time() -> None:
    found = energy_between(energy_meters(readings(power=300.0)), 2.0, 6.0)
    assert found is not None
    assert (found.joules, found.source, found.known, found.devices) == pytest.approx((1200.0, "power", 1.0, 1))


def test_the_energy_counter_takes_precedence_over_power() -> None:
    found = energy_between(energy_meters(readings(power=300.0, rate=350.0)), 1.1, 3.1)
    assert found is not None
    assert (found.joules, found.source) == pytest.approx((700.0, "counter"))


def test_a_rising_power_is_integrated_by_trapezoids() -> None:
    samples = [GpuSample(at=float(second), index=0, name="T4", power=10.0 * second) for second in range(11)]
    assert joules(samples, 0.0, 10.0) == pytest.approx(500.0)


def test_a_gap_in_the_power_is_excluded_and_reported() -> None:
    samples = [each for each in readings(power=100.0) if not 4.0 < each.at < 8.0]
    found = energy_between(energy_meters(samples), 0.0, 10.0)
    assert found is not None
    assert (found.joules, found.known) == pytest.approx((600.0, 0.6))


def test_a_gap_in_the_counter_loses_nothing() -> None:
    samples = [each for each in readings(rate=100.0) if not 4.0 < each.at < 8.0]
    found = energy_between(energy_meters(samples), 0.0, 10.0)
    assert found is not None
    assert (found.joules, found.known) == pytest.approx((1000.0, 1.0))


def test_a_restarted_counter_does_not_reduce_the_energy() -> None:
    samples = [
        GpuSample(at=at, index=0, name="H200", energy=value) for at, value in ((0, 900.0), (1, 1000.0), (2, 60.0))
    ]
    assert joules(samples, 0.0, 2.0) == pytest.approx(160.0)


def test_several_gpus_add_up_and_their_sources_are_reported() -> None:
    samples = [*readings(power=200.0, index=0), *readings(rate=300.0, index=1)]
    found = energy_between(energy_meters(samples), 0.0, 10.0)
    assert found is not None
    assert (found.joules, found.devices, found.source) == pytest.approx((5000.0, 2, "counter and power"))


def test_a_gpu_without_memory_of_the_engine_is_excluded() -> None:
    idle = readings(power=70.0, index=0)
    busy = [GpuSample(at=each.at, index=1, name="H200", power=600.0, engine_memory=1 << 30) for each in idle]
    found = energy_between(energy_meters([*idle, *busy]), 0.0, 10.0)
    assert found is not None
    assert (found.joules, found.devices) == pytest.approx((6000.0, 1))


@pytest.mark.parametrize(
    "samples",
    [
        [],
        [GpuSample(at=0.0, index=0, name="T4", power=70.0)],
        [GpuSample(at=float(at), index=0, name="T4") for at in range(5)],
    ],
    ids=["no GPU", "one reading", "neither energy nor power"],
)
def test_without_samples_the_energy_is_unknown(samples: list[GpuSample]) -> None:
    assert energy_between(energy_meters(samples), 0.0, 10.0) is None


@pytest.mark.parametrize(("start", "until"), [(20.0, 30.0), (5.0, 5.0), (6.0, 5.0), (0.0, math.inf)])
def test_a_period_without_known_energy_has_no_energy(start: float, until: float) -> None:
    assert energy_between(energy_meters(readings(power=100.0)), start, until) is None


known_or_not = st.none() | st.floats(0.0, 1000.0)
runs = st.lists(st.tuples(st.floats(0.01, 5.0), known_or_not, st.booleans()), min_size=2, max_size=40)


@given(runs, st.lists(st.floats(-5.0, 250.0), min_size=3, max_size=3))
def test_parts_of_a_period_add_up_and_are_never_negative(
    rows: list[tuple[float, float | None, bool]], instants: list[float]
) -> None:
    at, counter, samples = 0.0, 0.0, []
    for step, power, counts in rows:
        at, counter = at + step, counter + step * (power or 0.0)
        samples.append(GpuSample(at=at, index=int(counts), name="x", power=power, energy=counter if counts else None))
    meters, (start, middle, until) = energy_meters(samples), sorted(instants)
    for meter in meters:
        first, second, whole = meter.between(start, middle), meter.between(middle, until), meter.between(start, until)
        assert whole[0] == pytest.approx(first[0] + second[0], abs=1e-6)
        assert whole[1] == pytest.approx(first[1] + second[1], abs=1e-6)
        assert min(*first, *second) >= 0.0
        assert whole[1] <= until - start + 1e-9


@given(st.lists(st.tuples(st.floats(0.01, 1.9), st.floats(0.0, 1000.0)), min_size=2, max_size=40))
def test_the_mean_power_of_a_period_lies_between_minimum_and_maximum(rows: list[tuple[float, float]]) -> None:
    at, samples = 0.0, []
    for step, power in rows:
        at += step
        samples.append(GpuSample(at=at, index=0, name="x", power=power))
    powers = [power for _, power in rows]
    found = energy_between(energy_meters(samples), samples[0].at, samples[-1].at)
    assert found is not None
    assert min(powers) - 1e-6 <= found.joules / found.seconds <= max(powers) + 1e-6
