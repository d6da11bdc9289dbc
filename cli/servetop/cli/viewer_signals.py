"""Signals to a process that shows a run: it leaves its screen first, so that the terminal is as it was."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

_RESULTS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class ViewerSignals:
    """Remembers that SIGINT or SIGTERM came, and passes each on."""

    def __init__(self, pass_on: Callable[[signal.Signals], None] | None = None) -> None:
        self._pass_on = pass_on
        self._asked = ""

    def asked_to_leave(self) -> str:
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
        self._asked = _RESULTS[received]
        if self._pass_on is not None:
            self._pass_on(received)
