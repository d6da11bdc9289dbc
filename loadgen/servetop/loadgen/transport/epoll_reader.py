"""Reading many plain TCP sockets in few turns of the event loop.

Because the kernel stamps what arrives, nothing is lost by reading it a little later. So when many streams keep the
loop busy, the sockets are looked at now and then, all together, instead of one wake-up for each event.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from servetop.core.clock import MonotonicClock
from servetop.loadgen.transport.kernel_timestamps import ANCILLARY_BYTES, KernelTimestamps, RunTime, ask_for_stamps

LOOK_SECONDS = 0.002
"""Between two looks at busy sockets, at most; what a closed loop sends next goes out so much later."""
SHARE_OF_A_REQUEST = 0.01
"""And at most such a part of the time that a request takes."""
_SHORTEST_LOOK = 0.001
"""Seconds; the event loop's timers are no finer."""
_MANY = 16
"""Sockets from which on looking at all of them together pays."""
_LOOKS_IN_VAIN = 8
_READ_BYTES = 1 << 14
_READS_AT_A_STRETCH = 8
_MOST_READY = 4096
"""Sockets of one look."""
_TCP_QUICKACK = 12
"""Of linux/tcp.h; the socket module of other systems lacks it."""
_READABLE = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR if hasattr(select, "EPOLLIN") else 0


class Receiver(Protocol):
    """Gets what arrives on one socket."""

    earliest: float
    """Run time before which nothing can have arrived any more."""

    def arrived(self, data: bytes, at: float) -> None:
        """Bytes that reached this machine at run time `at`."""
        ...

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone; None: closed by the other side, or here."""
        ...


class PlainSocket:
    """A connected socket with what is still to be written to it."""

    def __init__(self, sock: socket.socket, receiver: Receiver, watch: SocketPoller) -> None:
        self.fd = sock.fileno()
        self.receiver = receiver
        self.recvmsg = sock.recvmsg
        self.behind = False
        """A read took as much as it could: the stamp says nothing of what waits, nor of how long the server had to."""
        self._sock = sock
        self._watch = watch
        self._unsent = b""
        self._waits = False

    def write(self, data: bytes) -> None:
        """Send bytes, as far as the kernel takes them now, and the rest later."""
        if not self._unsent and self.fd >= 0:
            self._unsent = data
            self.flush()
        else:
            self._unsent += data

    def flush(self) -> None:
        """Send what could not be sent before."""
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError as error:
            self.close(error)
            return
        if self._waits != bool(self._unsent):
            self._waits = bool(self._unsent)
            self._watch.wait_for_room(self.fd, wanted=self._waits)

    def delay_acks(self) -> None:
        """See Acknowledging; SocketWatch is for Linux only, which has the option."""
        if self.fd >= 0:
            self._sock.setsockopt(socket.IPPROTO_TCP, _TCP_QUICKACK, 0)

    def is_closing(self) -> bool:
        """Nothing can be sent any more."""
        return self.fd < 0

    def abort(self) -> None:
        """Close without a goodbye."""
        self.close(None)

    def close(self, why: Exception | None) -> None:
        """Close; the receiver learns of it at the loop's next turn."""
        if self.fd >= 0:
            self._watch.forget(self.fd)
            self.fd = -1
            self._sock.close()
            asyncio.get_running_loop().call_soon(self.receiver.connection_lost, why)


class SocketPoller:
    """Reads sockets on the running event loop, by an epoll of its own; Linux only (`available`)."""

    available = hasattr(select, "epoll")

    def __init__(self, clock: MonotonicClock, *, send_overdue: Callable[[], None]) -> None:
        """`send_overdue` is called after every few reads, and every few of the pieces that are taken in."""
        self._clock = clock
        self._send_overdue = send_overdue
        self._loop = asyncio.get_running_loop()
        self._stamps = KernelTimestamps(clock)
        self._sockets: dict[int, PlainSocket] = {}
        self._epoll = select.epoll()
        self._fd = self._epoll.fileno()
        self.looked_before = 0.0
        """Run time of the look before this one: what is read now came since."""
        self._looked_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._woken_at = 0.0
        self._in_vain = 0
        self._look_every = 0.0
        self._loop.add_reader(self._fd, self._woken)

    async def connect(self, address: str, port: int, receiver: Receiver) -> PlainSocket:
        """A connection to a numeric address. Raises OSError."""
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask_for_stamps(sock)
            await self._loop.sock_connect(sock, (address, port))
            plain = PlainSocket(sock, receiver, self)
            self._epoll.register(sock, select.EPOLLIN)
        except BaseException:
            sock.close()
            raise
        self._sockets[plain.fd] = plain
        return plain

    def takes_longer(self, seconds: float) -> None:
        """A request is that old, and goes on."""
        self._look_every = min(max(self._look_every, SHARE_OF_A_REQUEST * seconds), LOOK_SECONDS)

    def took(self, seconds: float) -> None:
        """A request has ended after that time."""
        self._look_every = min(self._look_every, SHARE_OF_A_REQUEST * seconds)

    @property
    def stamps(self) -> bool:
        """Every read so far had the kernel's stamp."""
        return not self._stamps.missing

    def wait_for_room(self, fd: int, *, wanted: bool) -> None:
        """Flush the socket when the kernel takes more; or no longer."""
        self._epoll.modify(fd, select.EPOLLIN | select.EPOLLOUT if wanted else select.EPOLLIN)

    def forget(self, fd: int) -> None:
        """It is about to be closed."""
        del self._sockets[fd]
        self._epoll.unregister(fd)

    def close(self) -> None:
        """Look no more; sockets stay as they are."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._fd)
        self._epoll.close()

    def _woken(self) -> None:
        """Something is there. When that comes too often, look by the clock from now on."""
        now = self._clock.now()
        often = now - self._woken_at < self._look_every
        if often and self._look_every >= _SHORTEST_LOOK and len(self._sockets) >= _MANY:
            self._loop.remove_reader(self._fd)
            self._timer = self._loop.call_later(self._look_every, self._look)
            self._in_vain = 0
        self._woken_at = now
        self._read_all()

    def _look(self) -> None:
        """Look again soon; after some looks in vain, or when requests have become short, wait to be woken."""
        self._timer = self._loop.call_later(self._look_every, self._look)
        self._in_vain = 0 if self._read_all() else self._in_vain + 1
        if self._in_vain == _LOOKS_IN_VAIN or self._look_every < _SHORTEST_LOOK:
            self._timer.cancel()
            self._loop.add_reader(self._fd, self._woken)

    def _read_all(self) -> int:
        """Read each socket that has something, once, and then take all of it in; how many had.

        Two loops, because each keeps to code and data of its own: that is faster than one.
        """
        self.looked_before, self._looked_at = self._looked_at, self._clock.now()
        ready = self._epoll.poll(0, _MOST_READY)
        if len(ready) == _MOST_READY:
            self._looked_at = self.looked_before  # others had something, too
        reads = self._receive(ready)
        for first in range(0, len(reads), _READS_AT_A_STRETCH):
            for receiver, data, at in reads[first : first + _READS_AT_A_STRETCH]:
                receiver.arrived(data, at)
            self._send_overdue()
        return len(ready)

    def _receive(self, ready: Sequence[tuple[int, int]]) -> list[tuple[Receiver, bytes, float]]:
        reads: list[tuple[Receiver, bytes, float]] = []
        run_time = self._stamps.compare_clocks()
        for first in range(0, len(ready), _READS_AT_A_STRETCH):
            self._send_overdue()
            reads += self._read(ready[first : first + _READS_AT_A_STRETCH], run_time)
        return reads

    def _read(self, ready: Sequence[tuple[int, int]], run_time: RunTime) -> list[tuple[Receiver, bytes, float]]:
        sockets, readable = self._sockets, select.EPOLLIN
        reads: list[tuple[Receiver, bytes, float]] = []
        for fd, events in ready:
            plain = sockets.get(fd)
            if plain is None:  # closed meanwhile
                continue
            if events != readable and events & select.EPOLLOUT:
                plain.flush()
                if not events & _READABLE:
                    continue
            try:
                data, ancillary, _, _ = plain.recvmsg(_READ_BYTES, ANCILLARY_BYTES)
            except BlockingIOError:
                continue
            except OSError as error:
                plain.close(error)
                continue
            if not data:
                plain.close(None)
                continue
            if len(data) == _READ_BYTES:
                self._looked_at = self.looked_before  # there is more of it, as old as this
                plain.behind = True
            receiver = plain.receiver
            receiver.earliest = at = run_time(ancillary, receiver.earliest)
            reads.append((receiver, data, at))
        return reads
