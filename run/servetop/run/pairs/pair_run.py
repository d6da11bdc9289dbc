"""One run of a series, in a process of its own: no run is warmer than another, and a kill leaves none behind."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode
from servetop.run.pairs.pair_series import PlayedRun
from servetop.run.process.owned_run import OwnedRun, RunKilled, stderr_file

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class PairRuns:
    """Plays the runs of a series, and passes signals on to the current one."""

    def __init__(self) -> None:
        self._current: OwnedRun | None = None
        self._received: signal.Signals | None = None

    def interrupted(self) -> bool:
        """Whether a signal has arrived."""
        return self._received is not None

    @contextlib.contextmanager
    def signals_caught(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM in this block: each goes to the current run, and ends the series after it."""
        before = {each: signal.signal(each, self._receive) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def play(self, config: RunConfig, recording: Path) -> PlayedRun:
        """Run a load and wait for its end."""
        with stderr_file() as stderr:
            run = self._current = OwnedRun.start(config, recording, stderr=stderr)
            if self._received is not None:  # while it started
                run.signal(self._received)
            try:
                code = run.wait()
            except RunKilled as killed:
                return PlayedRun(exit_code=ExitCode.RUN_FAILED, reason=str(killed))
            finally:
                self._current = None
            return PlayedRun(exit_code=code, reason=run.last_stderr_line() if code else "")

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        received = signal.Signals(number)
        if self._received is not None and self._current is None:  # the second one, while results are computed
            signal.signal(received, signal.SIG_DFL)
            os.kill(os.getpid(), received)
        self._received = received
        if self._current is not None:
            self._current.signal(received)
