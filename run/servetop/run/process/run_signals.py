"""The signals that a run process obeys, from before its event loop begins until its recording is closed."""

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
    """SIGTERM and SIGHUP drain, SIGINT and a second SIGTERM cancel; what comes before the run begins is kept for it.

    A SIGHUP after a SIGTERM asks for nothing more: systemd may send both at once.
    """

    def __init__(self) -> None:
        self._received: list[signal.Signals] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._requests: StopRequests | None = None

    @contextlib.contextmanager
    def caught(self) -> Iterator[RunSignals]:
        """Catch them; SIGHUP only where it was not ignored from the start, as by nohup."""
        caught = [each for each in _SIGNALS if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN]
        before = {each: signal.signal(each, self._receive) for each in caught}
        try:
            yield self
        finally:
            if signal.SIGHUP in self._received:  # a closed terminal may say so once more, while the summary is written
                before[signal.SIGHUP] = signal.SIG_IGN
            for each, handler in before.items():
                signal.signal(each, handler)

    def give_to(self, requests: StopRequests) -> None:
        """Pass all signals on, those that came before too; called on the running event loop."""
        self._loop, self._requests = asyncio.get_running_loop(), requests
        for number in self._received:
            self._obey(number)

    def ignore(self) -> None:
        """The run has ended: what comes now must not keep its recording from being closed."""
        self._loop = self._requests = None

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        received = signal.Signals(number)
        self._received.append(received)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._obey, received)

    def _obey(self, number: signal.Signals) -> None:
        if self._requests is None:
            return
        if number == signal.SIGINT or (number == signal.SIGTERM and self._requests.action is not None):
            self._requests.cancel()
        else:
            self._requests.drain(f"stopped by {number.name}")
