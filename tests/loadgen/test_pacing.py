"""Both timers fire once, never before their deadline."""

import asyncio
import gc
import math
from collections.abc import Callable

import pytest

from servetop.core.clock import MonotonicClock
from servetop.loadgen.pacing import DeadlineTimer, LoopTimer, TimerFd, quiet_collector

Kind = Callable[[MonotonicClock, Callable[[], None]], DeadlineTimer]
both = pytest.mark.parametrize("kind", [TimerFd, LoopTimer])


@both
async def test_a_timer_fires_once_and_not_early(kind: Kind) -> None:
    clock, fired = MonotonicClock(), list[float]()
    done = asyncio.Event()

    def ring() -> None:
        fired.append(clock.now())
        done.set()

    timer = kind(clock, ring)
    at = clock.now() + 0.03
    timer.arm(at)
    async with asyncio.timeout(5):
        await done.wait()
    assert fired[0] >= at
    assert len(fired) == 1
    timer.close()


@both
async def test_a_past_deadline_fires_at_once_and_the_timer_can_be_armed_again(kind: Kind) -> None:
    clock, done = MonotonicClock(), asyncio.Event()
    timer = kind(clock, done.set)
    for at in (-5.0, 0.0):
        done.clear()
        timer.arm(at)
        async with asyncio.timeout(5):
            await done.wait()
    timer.close()


@both
async def test_a_new_deadline_replaces_the_old_one_and_infinity_disarms(kind: Kind) -> None:
    clock, fired, done = MonotonicClock(), list[str](), asyncio.Event()
    never, replaced = kind(clock, lambda: fired.append("never")), kind(clock, done.set)
    never.arm(clock.now() + 0.01)
    never.arm(math.inf)
    replaced.arm(clock.now() + 60)
    replaced.arm(clock.now() + 0.05)
    async with asyncio.timeout(5):
        await done.wait()
    assert fired == []
    for timer in (never, replaced):
        timer.close()
        timer.arm(0.0)
    await asyncio.sleep(0.01)
    assert fired == []


def test_garbage_collection_is_rare_during_a_run_and_restored_afterwards() -> None:
    before = gc.get_threshold()
    with quiet_collector():
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
