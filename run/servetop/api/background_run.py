"""A run on a thread of its own, beside the thread that called `servetop.api`."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from servetop.core.config import RunConfig
from servetop.core.errors import RecordingError
from servetop.run.process.run_signals import RunSignals

if TYPE_CHECKING:
    from servetop.analysis.live_stats import LiveStats
    from servetop.run.run_process import FinishedRun

POLL_SECONDS = 0.5
"""Time between two reports of the progress."""
_MOST_TICKS = 400
"""Ticks kept in memory: more than twice the window of rates and percentiles."""

T = TypeVar("T")
Put = Callable[["LiveStats | None"], None]
"""Takes the state of the run, and None when it has ended; called on the run's thread."""


class BackgroundRun(Generic[T]):
    """Starts a run at once; `put` gets its state about twice a second, and once more before its end.

    `finish` computes the result of the run that has ended.
    """

    def __init__(self, config: RunConfig, recording: Path, *, put: Put, finish: Callable[[FinishedRun], T]) -> None:
        self._config = config
        self._recording = recording
        self._put = put
        self._finish = finish
        self._signals = RunSignals()
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._execute, name="servetop run")
        self._thread.start()

    def interrupt(self) -> None:
        """Cancel the requests in flight and end the run, as Ctrl-C does; its recording is completed."""
        self._signals.interrupt()

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._thread.join()

    def result(self) -> T:
        """Wait for the end, and return the result; raise what ended the run before it could be recorded."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _execute(self) -> None:
        try:
            from servetop.run.run_process import RunContext, execute

            observer = _StateObserver(self._config, self._recording, self._put)
            context = RunContext(signals=self._signals, observer=observer)
            self._results.append(self._finish(execute(self._config, self._recording, context=context)))
        except BaseException as error:  # raised again on the thread that waits for the result
            self._error = error
        finally:
            self._put(None)


class _StateObserver:
    """Reads the growing recording, as a dashboard does; prints nothing."""

    def __init__(self, config: RunConfig, recording: Path, put: Put) -> None:
        self._objectives = config.goodput
        self._recording = recording
        self._put = put

    async def follow(self) -> None:
        """Report the state until cancelled, and a last time then."""
        from servetop.analysis.live_stats import live_stats
        from servetop.analysis.series.tick_history import TickHistory
        from servetop.recordings.read.reader import RecordingReader

        history = TickHistory()

        def report(reader: RecordingReader) -> None:
            for tick in reader.poll().ticks:
                history.append(tick)
            if len(history) > _MOST_TICKS:
                history.drop_first(len(history) - _MOST_TICKS // 2)
            if len(history):
                self._put(live_stats(history, history.ticks[-1].end, objectives=self._objectives))

        with (
            contextlib.suppress(RecordingError, OSError),  # the run itself reports a file that cannot be read
            contextlib.closing(RecordingReader.open(self._recording)) as reader,
        ):
            try:
                while True:
                    await asyncio.sleep(POLL_SECONDS)
                    report(reader)
            finally:
                report(reader)

    def alert(self, line: str) -> None:
        """Ignore a line, which is in the recording too."""
