"""Reads many plain TCP sockets in few iterations of the event loop.

The kernel timestamps what arrives, so reading it a little later loses no precision. When many streams keep the loop
busy, all sockets are polled together at intervals instead of waking the loop for each event.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from servetop.core.clock import MonotonicClock
from servetop.loadgen.pacing import deadline_timer
from servetop.loadgen.transport.kernel_timestamps import ANCILLARY_BYTES, KernelTimestamps, RunTime, enable_timestamps

MAX_POLL_SECONDS = 0.002
"""Longest interval between two polls of busy sockets; a closed loop's next request is sent at most this much later."""
POLL_FRACTION = 0.01
"""Longest interval as a fraction of a request's duration."""
_MIN_POLL_SECONDS = 0.001
"""Resolution of the event loop's timers; wake-ups that follow each other faster are coalesced."""
PAUSE_SECONDS = 0.0005
"""Pause after such a wake-up, in which the other events of an engine's step arrive; later events wait for it."""
_MIN_SOCKETS = 16
"""Sockets for which polling at intervals is worthwhile."""
_MAX_EMPTY_POLLS = 8
_READ_BYTES = 1 << 14
_READS_PER_BATCH = 8
_MAX_READY = 4096
"""Sockets that one poll returns."""
_TCP_QUICKACK = 12
"""From linux/tcp.h; the socket module of other systems lacks it."""
_READABLE = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR if hasattr(select, "EPOLLIN") else 0


class Receiver(Protocol):
    """Receives the data of one socket."""

    not_before: float
    """Run time of the last read or write: unread data cannot have arrived earlier."""

    def data_arrived(self, data: bytes, at: float) -> None:
        """Handle data that arrived at this machine at run time `at`."""
        ...

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection; None: it was closed by either side."""
        ...


class PlainSocket:
    """A connected socket and its unsent data."""

    def __init__(self, sock: socket.socket, receiver: Receiver, poller: SocketPoller) -> None:
        self.fd = sock.fileno()
        self.receiver = receiver
        self.recvmsg = sock.recvmsg
        self.backlogged = False
        """A read filled its buffer: the timestamp does not cover the rest, and the server may have had to wait."""
        self._sock = sock
        self._poller = poller
        self._unsent = b""
        self._waits = False

    def write(self, data: bytes) -> None:
        """Send as much as the kernel accepts now, and the rest later."""
        if not self._unsent and self.fd >= 0:
            self._unsent = data
            self.flush()
        else:
            self._unsent += data

    def flush(self) -> None:
        """Send data that the kernel did not accept before."""
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError as error:
            self.close(error)
            return
        if self._waits != bool(self._unsent):
            self._waits = bool(self._unsent)
            self._poller.wait_writable(self.fd, wanted=self._waits)

    def delay_acks(self) -> None:
        """Leave TCP_QUICKACK mode, an option of Linux, for which SocketPoller is made."""
        if self.fd >= 0:
            self._sock.setsockopt(socket.IPPROTO_TCP, _TCP_QUICKACK, 0)

    def is_closing(self) -> bool:
        """Whether the socket is closed."""
        return self.fd < 0

    def abort(self) -> None:
        """Close and discard unsent data."""
        self.close(None)

    def close(self, why: Exception | None) -> None:
        """Close; the receiver is notified at the loop's next iteration."""
        if self.fd >= 0:
            self._poller.unregister(self.fd)
            self.fd = -1
            self._sock.close()
            asyncio.get_running_loop().call_soon(self.receiver.connection_lost, why)


class SocketPoller:
    """Reads sockets on the running event loop with its own epoll; Linux only (`available`)."""

    available = hasattr(select, "epoll")

    def __init__(
        self, clock: MonotonicClock, *, send_overdue: Callable[[], None], all_parsed: Callable[[], None]
    ) -> None:
        """Call `send_overdue` after every few reads, and after parsing every few; `all_parsed` after all of them."""
        self._clock = clock
        self._send_overdue, self._all_parsed = send_overdue, all_parsed
        self._loop = asyncio.get_running_loop()
        self._stamps = KernelTimestamps(clock)
        self._sockets: dict[int, PlainSocket] = {}
        self._epoll = select.epoll()
        self._fd = self._epoll.fileno()
        self.previous_poll_at = 0.0
        """Run time of the previous poll: data that is read now arrived since."""
        self._polled_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._woken_at = 0.0
        self._empty_polls = 0
        self._interval = 0.0
        self._pause = deadline_timer(clock, self._read_once)
        self._loop.add_reader(self._fd, self._on_readable)

    async def connect(self, address: str, port: int, receiver: Receiver) -> PlainSocket:
        """Connect to a numeric address; OSError if that fails."""
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            enable_timestamps(sock)
            await _connect(self._loop, sock, (address, port))
            plain = PlainSocket(sock, receiver, self)
            self._epoll.register(sock, select.EPOLLIN)
        except BaseException:
            sock.close()
            raise
        self._sockets[plain.fd] = plain
        return plain

    def note_age(self, seconds: float) -> None:
        """Adapt the interval to a request that has been in flight for this long and continues."""
        self._interval = min(max(self._interval, POLL_FRACTION * seconds), MAX_POLL_SECONDS)

    def note_duration(self, seconds: float) -> None:
        """Adapt the interval to a request that has ended after this long."""
        self._interval = min(self._interval, POLL_FRACTION * seconds)

    @property
    def stamps(self) -> bool:
        """Whether the kernel has timestamped every read so far."""
        return not self._stamps.missing

    def wait_writable(self, fd: int, *, wanted: bool) -> None:
        """Start or stop flushing the socket whenever it is writable."""
        self._epoll.modify(fd, select.EPOLLIN | select.EPOLLOUT if wanted else select.EPOLLIN)

    def unregister(self, fd: int) -> None:
        """Stop polling a socket that is about to be closed."""
        del self._sockets[fd]
        self._epoll.unregister(fd)

    def close(self) -> None:
        """Stop polling; the sockets stay open."""
        if self._timer is not None:
            self._timer.cancel()
        self._pause.close()
        self._loop.remove_reader(self._fd)
        self._epoll.close()

    def _on_readable(self) -> None:
        """Read the sockets that are ready; if wake-ups are too frequent, poll at intervals from now on."""
        now = self._clock.now()
        since, self._woken_at = now - self._woken_at, now
        if self._interval >= _MIN_POLL_SECONDS:
            if len(self._sockets) >= _MIN_SOCKETS and since < self._interval:
                self._sleep(self._interval, self._poll)
                self._empty_polls = 0
            elif since < _MIN_POLL_SECONDS:
                self._loop.remove_reader(self._fd)
                self._pause.arm(now + PAUSE_SECONDS)
        self._read_all()

    def _sleep(self, seconds: float, then: Callable[[], None]) -> None:
        """Let nothing that arrives wake the loop for a while."""
        self._loop.remove_reader(self._fd)
        self._timer = self._loop.call_later(seconds, then)

    def _read_once(self) -> None:
        """Read what has arrived during a pause, and wait for wake-ups again."""
        self._woken_at = self._clock.now()
        self._loop.add_reader(self._fd, self._on_readable)
        self._read_all()

    def _poll(self) -> None:
        """Poll and schedule the next poll; after some empty polls, or if requests are short now, wait for wake-ups."""
        self._timer = self._loop.call_later(self._interval, self._poll)
        self._empty_polls = 0 if self._read_all() else self._empty_polls + 1
        if self._empty_polls == _MAX_EMPTY_POLLS or self._interval < _MIN_POLL_SECONDS:
            self._timer.cancel()
            self._loop.add_reader(self._fd, self._on_readable)

    def _read_all(self) -> int:
        """Read each ready socket once, then parse all reads; return the number of ready sockets.

        Two loops are faster than one, because each stays within its own code and data.
        """
        self.previous_poll_at, self._polled_at = self._polled_at, self._clock.now()
        ready = self._epoll.poll(0, _MAX_READY)
        if len(ready) == _MAX_READY:
            self._polled_at = self.previous_poll_at  # more sockets may be ready
        reads = self._receive(ready)
        for first in range(0, len(reads), _READS_PER_BATCH):
            for receiver, data, at in reads[first : first + _READS_PER_BATCH]:
                receiver.data_arrived(data, at)
            self._send_overdue()
        self._all_parsed()
        return len(ready)

    def _receive(self, ready: Sequence[tuple[int, int]]) -> list[tuple[Receiver, bytes, float]]:
        reads: list[tuple[Receiver, bytes, float]] = []
        run_time = self._stamps.compare_clocks()
        for first in range(0, len(ready), _READS_PER_BATCH):
            self._send_overdue()
            reads += self._read(ready[first : first + _READS_PER_BATCH], run_time)
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
                self._polled_at = self.previous_poll_at  # the rest is as old as this
                plain.backlogged = True
            receiver = plain.receiver
            receiver.not_before = at = run_time(ancillary, receiver.not_before)
            reads.append((receiver, data, at))
        return reads


async def _connect(loop: asyncio.AbstractEventLoop, sock: socket.socket, address: tuple[str, int]) -> None:
    """Connect a non-blocking socket to a numeric address; OSError if that fails.

    `sock_connect` of uvloop looks up even a numeric address in a thread, which waits for a processor on a busy machine.
    """
    error = sock.connect_ex(address)
    if error == errno.EINPROGRESS:
        writable = asyncio.Event()
        loop.add_writer(sock, writable.set)
        try:
            await writable.wait()
        finally:
            loop.remove_writer(sock)
        error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        raise OSError(error, os.strerror(error))
