"""Arrival times of received data from the kernel, which do not depend on when the data is read.

Linux timestamps each incoming TCP segment (SO_TIMESTAMPNS, socket(7)) in CLOCK_REALTIME. A read that covers several
segments has the timestamp of the last one.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable

from servetop.core.clock import MonotonicClock
from servetop.core.units import NS_PER_S

_SO_TIMESTAMPNS = 35
"""From asm-generic/socket.h, which x86 and ARM use; the control message of the timestamp has the same number."""
_TIMESPEC = struct.Struct("@ll")
_unpack = _TIMESPEC.unpack
ANCILLARY_BYTES = socket.CMSG_SPACE(_TIMESPEC.size) if sys.platform == "linux" else 0
"""Ancillary buffer that `recvmsg` needs for a timestamp."""
_S_PER_NS = 1 / NS_PER_S
_NS_PER_S = int(NS_PER_S)


def enable_timestamps(sock: socket.socket) -> bool:
    """Turn on kernel timestamps for a socket; return False if the system does not support them."""
    if sys.platform != "linux":
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


Ancillary = list[tuple[int, int, bytes]]
"""Ancillary data as `recvmsg` returns it."""
RunTime = Callable[[Ancillary, float], float]
"""Converts a read's timestamp to run time, given the earliest possible one.

Returns the current time if there is no timestamp, or an impossible one because the wall clock has been set.
"""
_ROUNDING = 0.000_1
"""Seconds by which two clock comparisons may differ, so that two reads of one segment stay in order."""


class KernelTimestamps:
    """Converts kernel timestamps to run time."""

    def __init__(self, clock: MonotonicClock) -> None:
        self._clock = clock
        self.missing = False
        """Some read had no timestamp."""

    def compare_clocks(self) -> RunTime:
        """Return the conversion for the reads that follow at once; the wall clock may be set at any time."""
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
