"""GPUs are read where there are any, and missing without a word where there are none."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.events import GpuSample
from servetop.engines.gpu import GpuReader, GpuSampler, NvmlReader, open_nvml


class NvmlError(Exception):
    """As pynvml.NVMLError."""


class TwoCards:
    """NVML's functions over two cards, of which the second one cannot tell its power, as some cannot."""

    NVMLError = NvmlError
    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM, NVML_CLOCK_MEM = 0, 1, 2

    def nvmlDeviceGetName(self, device: int) -> str | bytes:
        return "NVIDIA H200" if device == 0 else b"Tesla T4"

    def nvmlDeviceGetMemoryInfo(self, device: int) -> Any:
        return SimpleNamespace(used=10 << 30, total=140 << 30)

    def nvmlDeviceGetUtilizationRates(self, device: int) -> Any:
        return SimpleNamespace(gpu=87, memory=40)

    def nvmlDeviceGetPowerUsage(self, device: int) -> int:
        if device == 1:
            raise NvmlError("Not Supported")
        return 612_500

    def nvmlDeviceGetTemperature(self, device: int, sensor: int) -> int:
        return 61

    def nvmlDeviceGetClockInfo(self, device: int, kind: int) -> int:
        return {1: 1980, 2: 3201}[kind]


async def first_samples(sampler: GpuSampler, clock: MonotonicClock) -> list[GpuSample]:
    until = clock.now() + 5
    while not (found := sampler.sample()) and clock.now() < until:
        await clock.sleep_until(clock.now() + 0.01)
    return found


async def test_every_card_is_read_in_our_units(clock: MonotonicClock) -> None:
    sampler = GpuSampler(clock, open_reader=lambda: NvmlReader(TwoCards(), [0, 1]))
    samples = await first_samples(sampler, clock)
    sampler.close()
    at = samples[0].at
    assert samples[0] == GpuSample(
        at=at,
        index=0,
        name="NVIDIA H200",
        utilisation=0.87,
        memory_used=10 << 30,
        memory_total=140 << 30,
        power=612.5,
        temperature=61.0,
        sm_clock=1.98e9,
        memory_clock=3.201e9,
    )
    assert (samples[1].index, samples[1].name, samples[1].power) == (1, "Tesla T4", None)


async def test_each_reading_is_returned_once_and_the_next_is_newer(clock: MonotonicClock) -> None:
    sampler = GpuSampler(clock, open_reader=lambda: NvmlReader(TwoCards(), [0]))
    first = await first_samples(sampler, clock)
    second = await first_samples(sampler, clock)
    sampler.close()
    assert first[0].at < second[0].at


def test_without_a_gpu_there_are_no_samples_and_one_attempt(clock: MonotonicClock) -> None:
    attempts: list[float] = []

    def none_there() -> GpuReader | None:
        attempts.append(clock.now())
        return None

    sampler = GpuSampler(clock, open_reader=none_there)
    found: Sequence[list[GpuSample]] = [sampler.sample() for _ in range(100)]
    assert not any(found)
    assert len(attempts) == 1


def test_this_machine_is_asked_without_an_error_whatever_it_has(clock: MonotonicClock) -> None:
    reader = open_nvml()
    if reader is None:
        pytest.skip("no NVIDIA GPU on this machine: asking it gave no error")
    assert all(sample.name and sample.memory_total for sample in reader(clock.now()))
