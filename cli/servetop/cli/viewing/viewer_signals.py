"""Signals to a process that shows a run: it leaves its screen first, which restores the terminal."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

_RESULTS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

PAGE_SERVER = "SERVETOP_PAGE_SERVER"
"""Environment variable with the pid of the web server that started a viewer; that process may have ended since."""


class ViewerSignals:
    """Records that SIGINT or SIGTERM arrived, and forwards each.

    If there is no one to forward it to, the second one ends this process at once: it may be opening a recording.
    """

    def __init__(self, pass_on: Callable[[signal.Signals], None] | None = None) -> None:
        self._pass_on = pass_on
        self._reason = ""

    def exit_requested(self) -> str:
        """Return the dashboard's result after a signal, `interrupted` or `terminated`; empty before."""
        return self._reason

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Handles both signals while the context is active."""
        before = {each: signal.signal(each, self._receive) for each in _RESULTS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        received = signal.Signals(number)
        if self._pass_on is not None:
            self._pass_on(received)
        elif self._reason:
            signal.signal(received, signal.SIG_DFL)
            os.kill(os.getpid(), received)
        self._reason = _RESULTS[received]
