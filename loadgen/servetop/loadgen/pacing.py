"""Request pacing: timers for absolute due times. A Linux timerfd wakes within 60 µs, an event-loop timer within 1 ms.

Due times are never shifted by a late wake-up or a slow response, which avoids coordinated omission.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import gc
import math
import os
import sys
from collections.abc import Callable, Iterator
from typing import Protocol

from servetop.core.clock import MonotonicClock
from servetop.core.units import NS_PER_S

_CLOCK_MONOTONIC = 1
_TFD_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
_TFD_TIMER_ABSTIME = 1


class DeadlineTimer(Protocol):
    """Calls back once when an absolute run time is reached; holds one deadline at a time."""

    def arm(self, at: float) -> None:
        """Set the deadline, replacing the previous one; inf disarms, a past one fires at the loop's next iteration."""
        ...

    def close(self) -> None:
        """Disarm the timer for good."""
        ...


def deadline_timer(clock: MonotonicClock, callback: Callable[[], None]) -> DeadlineTimer:
    """Return the most precise timer available, on the running event loop."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            return TimerFd(clock, callback)
    return LoopTimer(clock, callback)


class LoopTimer(DeadlineTimer):
    """Uses the event loop's timers, which are up to about a millisecond late."""

    def __init__(self, clock: MonotonicClock, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._at = math.inf
        self._closed = False

    def arm(self, at: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._at = at
        if not math.isinf(at) and not self._closed:
            self._handle = self._loop.call_later(max(0.0, at - self._clock.now()), self._fired)

    def _fired(self) -> None:
        if self._clock.now() < self._at:
            self.arm(self._at)
        else:
            self._callback()

    def close(self) -> None:
        self._closed = True
        self.arm(math.inf)


class TimerFd(DeadlineTimer):
    """Uses a timerfd on absolute CLOCK_MONOTONIC time, registered with the event loop as a reader."""

    def __init__(self, clock: MonotonicClock, callback: Callable[[], None]) -> None:
        self._origin_ns = clock.origin_ns
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._fd = _timerfd_create()
        self._at = math.inf
        self._loop.add_reader(self._fd, self._fired)

    def arm(self, at: float) -> None:
        if self._fd >= 0 and at != self._at:
            self._at = at
            _timerfd_settime(self._fd, 0 if math.isinf(at) else max(1, self._origin_ns + round(at * NS_PER_S)))

    def _fired(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:  # re-armed since the loop polled it
            return
        self._at = math.inf
        self._callback()

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


if sys.version_info >= (3, 13) and sys.platform == "linux":

    def _timerfd_create() -> int:
        return os.timerfd_create(_CLOCK_MONOTONIC, flags=_TFD_FLAGS)

    def _timerfd_settime(fd: int, at_ns: int) -> None:
        os.timerfd_settime_ns(fd, flags=_TFD_TIMER_ABSTIME, initial=at_ns)

else:

    class _ITimerSpec(ctypes.Structure):
        """C's `struct itimerspec`: interval and value, each in seconds and nanoseconds."""

        _fields_ = tuple((name, ctypes.c_long) for name in ("interval_s", "interval_ns", "value_s", "value_ns"))

    def _timerfd_create() -> int:
        fd: int = _libc().timerfd_create(_CLOCK_MONOTONIC, _TFD_FLAGS)
        if fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        return fd

    def _timerfd_settime(fd: int, at_ns: int) -> None:
        spec = _ITimerSpec(0, 0, *divmod(at_ns, int(NS_PER_S)))
        if _libc().timerfd_settime(fd, _TFD_TIMER_ABSTIME, ctypes.byref(spec), None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    @functools.cache
    def _libc() -> ctypes.CDLL:
        return ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def quiet_collector() -> Iterator[None]:
    """Keep garbage collection from pausing a run: existing objects are frozen, new ones are collected rarely."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
