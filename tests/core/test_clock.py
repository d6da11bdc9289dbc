"""Sleepers wake in order and never early."""

import asyncio

from servetop.core.clock import ManualClock, MonotonicClock


async def test_sleepers_of_a_manual_clock_wake_in_the_order_of_their_deadlines() -> None:
    clock, woken = ManualClock(), []

    async def sleeper(at: float) -> None:
        await clock.sleep_until(at)
        woken.append(at)

    tasks = [asyncio.ensure_future(sleeper(at)) for at in (3.0, 1.0, 2.0)]
    await asyncio.sleep(0)
    clock.advance_to(2.5)
    await asyncio.wait(tasks[1:])
    assert woken == [1.0, 2.0]
    clock.advance_to(9.0)
    await asyncio.gather(*tasks)


async def test_the_monotonic_clock_never_wakes_a_sleeper_early() -> None:
    clock = MonotonicClock()
    deadline = clock.now() + 0.01
    await clock.sleep_until(deadline)
    assert clock.now() >= deadline
