"""A run ends with its owner, unless the owner releases it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from servetop.core.errors import UsageError
from servetop.core.events import Action
from servetop.run.outcome import Outcome
from servetop.run.process import owner_pipe
from servetop.run.process.owner_pipe import HANG_UP, RELEASE, SHOWN, OwnerPipe
from servetop.run.process.run_signals import RunSignals
from servetop.run.stop_requests import StopRequests

KILLED = "stopped because the process that started it was killed"


def unread(note: str) -> None:
    """For notes that a test does not look at."""


@contextlib.contextmanager
def pipe() -> Iterator[tuple[OwnerPipe, list[int]]]:
    """The run's end, and the owner's, which a test may close."""
    ours, theirs = os.pipe()
    ends = [theirs]
    try:
        yield OwnerPipe(ours), ends
    finally:
        for fd in (ours, *ends):
            os.close(fd)


async def test_the_loss_of_the_owner_drains_the_run_and_soon_cancels_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_pipe, "OWNERLESS_DRAIN_SECONDS", 0.01)
    notes: list[str] = []
    requests = StopRequests(Outcome(), notes.append, lambda: notes.append("hurry"))
    with pipe() as (owner, ends):
        owner.watch(requests)
        assert requests.action is None
        os.close(ends.pop())
        async with asyncio.timeout(10):
            while requests.action is not Action.CANCEL:
                await asyncio.sleep(0.001)
    assert notes == [KILLED, "hurry"]
    assert not owner.waits


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_released_run_continues_when_its_owner_ends(at_once: bool) -> None:
    requests = StopRequests(Outcome(), unread)
    with pipe() as (owner, ends):
        os.write(ends[0], b'{"seed": 1}\n' + (RELEASE + b"\n" if at_once else b""))
        assert owner.read_setup() == {"seed": 1}
        owner.watch(requests)
        if not at_once:
            os.write(ends[0], RELEASE[:3])
            os.write(ends[0], RELEASE[3:] + b"\n")
        os.close(ends.pop())
        async with asyncio.timeout(10):
            while owner.waits:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0)
    assert requests.action is None


async def test_a_closed_terminal_drains_the_run_without_cancelling() -> None:
    outcome = Outcome()
    requests = StopRequests(outcome, unread)
    with pipe() as (owner, ends):
        owner.watch(requests)
        os.write(ends[0], HANG_UP + b"\n")
        os.close(ends.pop())
        async with asyncio.timeout(10):
            while requests.action is None:
                await asyncio.sleep(0.001)
    assert requests.action is Action.STOP
    assert outcome.drain_reason == "stopped because its terminal was closed"


def test_a_pipe_that_closes_before_the_setup_is_an_error() -> None:
    with pipe() as (owner, ends):
        os.write(ends[0], b'{"seed"')
        os.close(ends.pop())
        with pytest.raises(UsageError, match="standard input"):
            owner.read_setup()


@pytest.fixture
def heeds_hang_ups() -> Iterator[None]:
    """Also where the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heeds_hang_ups")
@pytest.mark.parametrize(
    ("numbers", "action", "interruptions"),
    [
        ([signal.SIGTERM], Action.STOP, 0),
        ([signal.SIGHUP], Action.STOP, 0),
        ([signal.SIGINT], Action.CANCEL, 1),
        ([signal.SIGTERM, signal.SIGTERM], Action.CANCEL, 1),
        ([signal.SIGTERM, signal.SIGHUP], Action.STOP, 0),
        ([signal.SIGINT, signal.SIGINT], Action.CANCEL, 2),
    ],
)
async def test_signals_before_the_start_of_a_run_apply_to_it(
    numbers: list[signal.Signals], action: Action, interruptions: int
) -> None:
    outcome = Outcome()
    requests = StopRequests(outcome, unread)
    signals = RunSignals()
    with signals.caught():
        for number in numbers:
            os.kill(os.getpid(), number)
        signals.apply_to(requests)
    assert requests.action is action
    assert outcome.interruptions == interruptions


def test_a_sighup_that_is_ignored_at_the_start_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with RunSignals().caught():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("written", [SHOWN + b"\n", RELEASE + b"\n", None], ids=["shown", "another word", "owner gone"])
async def test_a_run_that_awaits_a_frame_starts_at_any_line_of_its_owner(
    monkeypatch: pytest.MonkeyPatch, written: bytes | None
) -> None:
    monkeypatch.setattr(owner_pipe, "FRAME_SECONDS", 1e6)
    with pipe() as (owner, ends):
        waiting = asyncio.ensure_future(owner.frame_drawn())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        if written is None:
            os.close(ends.pop())
        else:
            os.write(ends[0], written)
        async with asyncio.timeout(10):
            await waiting


async def test_a_run_starts_without_a_frame_after_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_pipe, "FRAME_SECONDS", 0.01)
    with pipe() as (owner, _):
        async with asyncio.timeout(10):
            await owner.frame_drawn()


async def test_lines_around_the_first_frame_are_still_applied() -> None:
    requests = StopRequests(Outcome(), unread)
    with pipe() as (owner, ends):
        os.write(ends[0], b"{}\n" + SHOWN + b"\n")
        owner.read_setup()
        await owner.frame_drawn()
        owner.watch(requests)
        assert owner.waits
        os.write(ends[0], RELEASE + b"\n")
        async with asyncio.timeout(10):
            while owner.waits:
                await asyncio.sleep(0.001)
    assert requests.action is None
