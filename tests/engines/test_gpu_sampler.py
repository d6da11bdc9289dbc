"""GPUs are sampled where there are any; a machine without one gets no message."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import psutil
import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.events import GpuSample
from servetop.engines.gpu.gpu_processes import OwnPids, in_tree
from servetop.engines.gpu.gpu_reader import GpuReader
from servetop.engines.gpu.gpu_sampler import GpuSampler, open_gpus
from servetop.engines.gpu.nvidia import NvmlReader, device_handles, open_nvml, throttle_reasons
from tests.engines.stand_in_nvml import OneLostCard, SlowToFree, TwoCards


async def first_samples(sampler: GpuSampler, clock: MonotonicClock) -> list[GpuSample]:
    until = clock.now() + 5
    while not (found := sampler.sample()) and clock.now() < until:
        await clock.sleep_until(clock.now() + 0.01)
    return found


async def test_every_card_is_read_in_our_units(clock: MonotonicClock) -> None:
    sampler = GpuSampler(clock, open_reader=lambda: NvmlReader(TwoCards(), [0, 1], owns=lambda pid: pid < 200))
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
        engine_memory=9 << 30,
        energy=8_123_456 * 1e-3,
        throttled="power cap, heat",
    )
    other = samples[1]
    assert (other.index, other.name, other.power, other.energy) == (1, "Tesla T4", None, None)
    assert (other.engine_memory, other.throttled) == (None, "")


async def test_a_lost_card_hides_no_other_and_is_named_once(clock: MonotonicClock) -> None:
    cards = OneLostCard()
    handles, unreadable = device_handles(cards)
    sampler = GpuSampler(clock, open_reader=lambda: NvmlReader(cards, handles, unreadable=unreadable))
    samples = await first_samples(sampler, clock)
    assert [(each.index, each.name) for each in samples] == [(1, "Tesla T4"), (2, "Tesla T4")]
    named = sampler.newly_unreadable()
    cards.gone = True
    while (samples := await first_samples(sampler, clock))[-1].utilisation is not None:
        pass
    named += [*sampler.newly_unreadable(), *sampler.newly_unreadable()]
    sampler.close()
    assert [(each.index, each.name, each.utilisation) for each in samples] == [
        (1, "Tesla T4", 0.87), (2, "Tesla T4", None),
    ]  # fmt: skip
    assert named == [f"GPU {each} is not sampled: it cannot be read (GPU is lost): see nvidia-smi" for each in (0, 2)]


async def test_each_reading_is_returned_once_and_the_next_is_newer(clock: MonotonicClock) -> None:
    sampler = GpuSampler(clock, open_reader=lambda: NvmlReader(TwoCards(), [0]))
    first = await first_samples(sampler, clock)
    second = await first_samples(sampler, clock)
    sampler.close()
    assert first[0].at < second[0].at


@pytest.mark.parametrize(("readings", "patience", "left"), [(3, 5.0, 0), (10**9, 0.2, 6 << 30)])
async def test_memory_of_an_engine_that_has_ended_is_waited_for(
    readings: int, patience: float, left: int, clock: MonotonicClock
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as engine:
        card, owns = SlowToFree(engine.pid, readings=readings), OwnPids()
        owns.follow(engine.pid)
        sampler = GpuSampler(clock, open_reader=lambda: NvmlReader(card, [0], owns=owns))
        running = await first_samples(sampler, clock)
        engine.kill()
    try:
        assert running[0].engine_memory == 6 << 30
        assert await sampler.left_over(patience) == left
    finally:
        sampler.close()


async def test_an_unresponsive_driver_gives_no_leftover_memory(clock: MonotonicClock) -> None:
    sampler = GpuSampler(clock, open_reader=lambda: None)
    assert await sampler.left_over(0.2) is None
    sampler.close()


def test_a_process_of_the_engine_stays_its_own_until_another_is_followed() -> None:
    leader = [sys.executable, "-c", "input()"]
    with subprocess.Popen(leader, stdin=subprocess.PIPE, start_new_session=True) as engine:
        owns = OwnPids()
        assert not owns(engine.pid)
        owns.follow(engine.pid)
        assert owns(engine.pid)
        assert not owns(os.getpid())
        engine.kill()
    assert owns(engine.pid)
    owns.follow(None)
    assert not owns(engine.pid)


def test_without_a_gpu_there_are_no_samples_and_one_attempt(clock: MonotonicClock) -> None:
    attempts: list[float] = []

    def none_there() -> GpuReader | None:
        attempts.append(clock.now())
        return None

    sampler = GpuSampler(clock, open_reader=none_there)
    found: Sequence[list[GpuSample]] = [sampler.sample() for _ in range(100)]
    assert not any(found)
    assert len(attempts) == 1


def test_reading_the_gpus_of_this_machine_never_fails(clock: MonotonicClock) -> None:
    reader = open_nvml()
    if reader is None:
        pytest.skip("no NVIDIA GPU on this machine: asking it gave no error")
    assert all(sample.name and sample.memory_total for sample in reader(clock.now()))


def test_opening_whatever_gpus_there_are_gives_no_error() -> None:
    assert (open_gpus() is None) == (open_nvml() is None)


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        (None, None),
        (0, ""),
        (0x1, ""),
        (0x2 | 0x100, ""),
        (0x4, "power cap"),
        (0x48, "hardware slowdown, heat (hardware)"),
    ],
)
def test_throttle_reasons_are_named_and_idling_is_not_one(reasons: int | None, words: str | None) -> None:
    assert throttle_reasons(reasons) == words


def test_a_descendant_and_a_member_of_the_session_are_the_engines_and_others_are_not() -> None:
    program = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()']).wait()"
    leader = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, start_new_session=True)
    try:
        (child,) = wait_for_child(leader.pid)
        assert in_tree(leader.pid, leader.pid)
        assert in_tree(child, leader.pid)
        assert in_tree(leader.pid, os.getpid())
        assert not in_tree(os.getpid(), leader.pid)
    finally:
        leader.communicate(b"\n")
    assert not in_tree(child, leader.pid)


def wait_for_child(pid: int) -> list[int]:
    clock = MonotonicClock()
    while not (found := [each.pid for each in psutil.Process(pid).children()]):
        assert clock.now() < 20, "no child was started"
    return found
