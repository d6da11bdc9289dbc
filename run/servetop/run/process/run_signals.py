"""The signals of a run process, from before its event loop starts until its recording is closed."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from servetop.run.stop_requests import StopRequests

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class RunSignals:
    """SIGTERM and SIGHUP drain, SIGINT and a second SIGTERM cancel; signals before the run starts are kept for it.

    A SIGHUP after a SIGTERM has no effect, because systemd may send both at once.
    """

    def __init__(self) -> None:
        self._received: list[signal.Signals] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._requests: StopRequests | None = None

    @contextlib.contextmanager
    def caught(self) -> Iterator[RunSignals]:
        """Handle the signals in this block; SIGHUP only if it was not ignored from the start, as with nohup."""
        caught = [each for each in _SIGNALS if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN]
        before = {each: signal.signal(each, self._receive) for each in caught}
        try:
            yield self
        finally:
            if signal.SIGHUP in self._received:  # a closed terminal may send it again while the summary is written
                before[signal.SIGHUP] = signal.SIG_IGN
            for each, handler in before.items():
                signal.signal(each, handler)

    def apply_to(self, requests: StopRequests) -> None:
        """Apply all signals, also earlier ones, to these requests; call on the running event loop."""
        self._loop, self._requests = asyncio.get_running_loop(), requests
        for number in self._received:
            self._apply(number)

    def interrupt(self) -> None:
        """Handle a SIGINT that was not sent: cancel the run, from any thread."""
        self._receive(signal.SIGINT, None)

    def ignore(self) -> None:
        """Ignore further signals, so that they cannot prevent the recording from being closed."""
        self._loop = self._requests = None

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        received = signal.Signals(number)
        self._received.append(received)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._apply, received)

    def _apply(self, number: signal.Signals) -> None:
        if self._requests is None:
            return
        if number == signal.SIGINT or (number == signal.SIGTERM and self._requests.action is not None):
            self._requests.cancel()
        else:
            self._requests.drain(f"stopped by {number.name}")
