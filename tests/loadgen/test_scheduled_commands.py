"""Timed commands are applied in order, at their times or at once if they are late."""

import asyncio
import math
from typing import Any, cast

from servetop.core.clock import MonotonicClock
from servetop.loadgen.messages import TimedCommand
from servetop.loadgen.sender.scheduled_commands import ScheduledCommands
from servetop.loadgen.sender.sender import Sender


class AppliedCommands:
    """Notes the commands that a sender would apply, and its barrier at that time."""

    def __init__(self) -> None:
        self.barrier = math.inf
        self.applied: list[tuple[float, float]] = []
        self.changed = asyncio.Event()

    def apply_timed(self, timed: TimedCommand) -> None:
        self.applied.append((timed.at, self.barrier))
        self.changed.set()


def scheduled(clock: MonotonicClock) -> tuple[ScheduledCommands, Any]:
    sender = AppliedCommands()
    return ScheduledCommands(cast("Sender", sender), clock), sender


async def test_a_late_command_is_applied_at_once() -> None:
    commands, sender = scheduled(MonotonicClock())
    commands.add(TimedCommand(at=-1.0, number_from=0))
    assert [at for at, _ in sender.applied] == [-1.0]
    assert sender.barrier == math.inf
    commands.close()


async def test_the_schedule_does_not_pass_a_command_before_it_is_applied() -> None:
    clock = MonotonicClock()
    commands, sender = scheduled(clock)
    at = clock.now() + 0.05
    commands.add(TimedCommand(at=at, number_from=0))
    commands.add(TimedCommand(at=at + 60.0, number_from=0))
    assert (sender.applied, sender.barrier) == ([], at)
    async with asyncio.timeout(10):
        await sender.changed.wait()
    await asyncio.sleep(0)
    assert sender.applied == [(at, at)]
    assert sender.barrier == at + 60.0
    commands.close()


async def test_closed_commands_are_not_applied() -> None:
    clock = MonotonicClock()
    commands, sender = scheduled(clock)
    commands.add(TimedCommand(at=clock.now() + 0.01, number_from=0))
    commands.close()
    await asyncio.sleep(0.05)
    assert sender.applied == []
