"""Signals to a process that shows a run: it leaves its screen first, so that the terminal is as it was."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

_RESULTS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

PAGE_SERVER = "SERVETOP_PAGE_SERVER"
"""Environment variable: the process whose pages a viewer draws. It may have ended before the viewer could look."""


class ViewerSignals:
    """Remembers that SIGINT or SIGTERM came, and passes each on.

    Where there is nobody to pass it on to, the second one ends this process at once: it may be opening a recording.
    """

    def __init__(self, pass_on: Callable[[signal.Signals], None] | None = None) -> None:
        self._pass_on = pass_on
        self._asked = ""

    def exit_requested(self) -> str:
        """The dashboard's result once a signal came, `interrupted` or `terminated`; empty before."""
        return self._asked

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Catch them meanwhile."""
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
        elif self._asked:
            signal.signal(received, signal.SIG_DFL)
            os.kill(os.getpid(), received)
        self._asked = _RESULTS[received]
