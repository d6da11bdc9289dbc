"""The change of a batch size that is under way."""

from __future__ import annotations

import asyncio

import pytest

from servetop.core.errors import EngineError
from servetop.core.events import Action, Command
from servetop.core.interfaces.run_source import EngineFacts
from servetop.run.loop.pending_batch_change import PendingBatchChange

FACTS = EngineFacts(name="sim", title="simulator")


def command(number: int) -> Command:
    return Command(id=number, at=1.0, action=Action.SET_MAX_NUM_SEQS, source="user", value=8.0)


async def changed() -> EngineFacts:
    return FACTS


async def fails() -> EngineFacts:
    raise EngineError("it did not start")


async def endless() -> EngineFacts:
    await asyncio.Event().wait()
    return FACTS


def test_an_accepted_command_is_pending_before_the_change_starts() -> None:
    change = PendingBatchChange()
    assert (change.is_pending, change.is_running, change.is_done) == (False, False, False)
    change.accept(command(1))
    assert (change.is_pending, change.is_running, change.is_done) == (True, False, False)


def test_a_taken_change_makes_room_for_the_next_one() -> None:
    async def take() -> None:
        change = PendingBatchChange()
        change.accept(command(1))
        change.start(changed())
        assert (change.is_running, change.is_done) == (True, False)
        await asyncio.sleep(0)
        assert change.is_done
        taken, task = change.take()
        assert (taken, task.result()) == (command(1), FACTS)
        assert not change.is_pending

    asyncio.run(take())


def test_a_change_without_a_command_is_a_stages() -> None:
    async def take() -> None:
        change = PendingBatchChange()
        change.start(fails())
        await asyncio.sleep(0)
        taken, task = change.take()
        assert taken is None
        with pytest.raises(EngineError, match="it did not start"):
            task.result()

    asyncio.run(take())


def test_commands_wait_in_order() -> None:
    change = PendingBatchChange()
    change.wait(command(2))
    change.wait(command(3))
    assert [change.next_waiting(), change.next_waiting(), change.next_waiting()] == [command(2), command(3), None]


def test_cancelling_waits_until_the_change_has_ended() -> None:
    async def cancel() -> None:
        change = PendingBatchChange()
        await change.cancel()  # nothing is under way
        change.start(endless())
        await change.cancel()
        assert change.is_done

    asyncio.run(cancel())
