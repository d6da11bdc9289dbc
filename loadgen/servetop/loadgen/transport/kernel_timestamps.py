"""When bytes reached this machine, told by its kernel: however late they are read, the time is true.

Linux stamps each TCP segment as it comes in (SO_TIMESTAMPNS, socket(7)), in CLOCK_REALTIME. A read that takes several
segments gets the stamp of the last one.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable

from servetop.core.clock import MonotonicClock
from servetop.core.units import NS_PER_S

_SO_TIMESTAMPNS = 35
"""Of asm-generic/socket.h, which x86 and ARM use; the message that carries the stamp has the same number."""
_TIMESPEC = struct.Struct("@ll")
_unpack = _TIMESPEC.unpack
ANCILLARY_BYTES = socket.CMSG_SPACE(_TIMESPEC.size) if sys.platform == "linux" else 0
"""Room that `recvmsg` needs for a stamp."""
_S_PER_NS = 1 / NS_PER_S
_NS_PER_S = int(NS_PER_S)


def ask_for_stamps(sock: socket.socket) -> bool:
    """Have the kernel stamp what arrives on a socket from now on; False where it cannot."""
    if sys.platform != "linux":
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


Ancillary = list[tuple[int, int, bytes]]
"""As `recvmsg` returns it."""
RunTime = Callable[[Ancillary, float], float]
"""Run time of the stamp of a read that cannot have come before another run time; else now: there is none, or it cannot
be, as when the wall clock has been set in between.
"""
_ROUNDING = 0.000_1
"""Seconds by which two comparisons of the clocks may differ: reads of one segment have one stamp."""


class KernelTimestamps:
    """Stamps as run time."""

    def __init__(self, clock: MonotonicClock) -> None:
        self._clock = clock
        self.missing = False
        """A read had none."""

    def compare_clocks(self) -> RunTime:
        """For the reads that follow at once: the wall clock may be set at any time."""
        clock = self._clock
        epoch_s, epoch_ns = divmod(clock.origin_epoch_ns(), _NS_PER_S)
        compared_at = clock.now()

        def run_time(ancillary: Ancillary, not_before: float) -> float:
            if ancillary:
                seconds, nanoseconds = _unpack(ancillary[0][2])
                at: float = seconds - epoch_s + (nanoseconds - epoch_ns) * _S_PER_NS
                if at <= compared_at or at <= clock.now():
                    if at >= not_before:
                        return at
                    if at > not_before - _ROUNDING:
                        return not_before
            else:
                self.missing = True
            return clock.now()

        return run_time
