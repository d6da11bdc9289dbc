"""When bytes reached this machine, told by its kernel: however late they are read, the time is true.

Linux stamps each TCP segment as it comes in (SO_TIMESTAMPNS, socket(7)), in CLOCK_REALTIME. A read that takes several
segments gets the stamp of the last one.
"""

from __future__ import annotations

import socket
import struct
import sys

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


class KernelStamps:
    """Stamps as run time. `compare_clocks` before each batch of reads: the wall clock may be set meanwhile."""

    def __init__(self, clock: MonotonicClock) -> None:
        self._clock = clock
        self._epoch_ns = 0
        self._compared_at = 0.0

    def compare_clocks(self) -> float:
        """The run time now."""
        self._epoch_ns = self._clock.origin_epoch_ns()
        self._compared_at = self._clock.now()
        return self._compared_at

    def at(self, ancillary: list[tuple[int, int, bytes]], *, not_before: float) -> float:
        """Run time of the stamp among what `recvmsg` returned; else now: there is none, or the clock has been set."""
        if ancillary:
            seconds, nanoseconds = _unpack(ancillary[0][2])
            at: float = (seconds * _NS_PER_S + nanoseconds - self._epoch_ns) * _S_PER_NS
            if not_before <= at and (at <= self._compared_at or at <= self._clock.now()):
                return at
        return self._clock.now()
