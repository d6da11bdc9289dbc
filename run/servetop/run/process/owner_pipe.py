"""The pipe by which a run's owner keeps it: the configuration comes first, and when it closes, the owner is gone.

An owner is the process that started the run for a person: a dashboard, or the server of its pages. The pipe closes
with the owner, however that ends, so that no run is left without one by accident.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

from servetop.core.errors import UsageError

if TYPE_CHECKING:
    from servetop.run.stop_requests import StopRequests

RELEASE = b"release"
"""The run goes on without an owner."""
HANG_UP = b"hang up"
"""The owner's terminal was closed: the run drains, and the owner does not wait for it."""
SHOWN = b"shown"
"""The owner has drawn its first frame: the run may use the processors now."""
AWAIT_FRAME = "--await-frame"
"""Option of the run process: its owner will say when its first frame is drawn; engine and senders start then."""
FRAME_SECONDS = 3.0
"""So long at the most they wait for it."""
OWNERLESS_DRAIN_SECONDS = 1.0
"""How long the requests of a run whose owner is gone may take to finish before they are cancelled."""
THROW_AWAY = "--throw-away"
"""Option of the run process: its recording lies in a folder of its own, which goes when nobody waits for the run."""
_READ_BYTES = 1 << 16


class OwnerPipe:
    """The run's end of the pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._unread = b""
        self.waits = True
        """The owner is there, and waits for the run's end."""

    def read_config(self) -> Any:
        """The first line, decoded from JSON; UsageError when the owner did not get to write it."""
        while b"\n" not in self._unread:
            data = os.read(self._fd, _READ_BYTES)
            if not data:
                raise UsageError("a run's configuration is expected as a line of JSON on standard input")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    async def frame_drawn(self) -> None:
        """Wait for SHOWN, for any other word, for the owner's end, or until FRAME_SECONDS are over."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()

        def read() -> None:
            data = os.read(self._fd, _READ_BYTES)
            self._unread += data
            if not data or b"\n" in self._unread:
                came.set()

        if b"\n" in self._unread:
            return
        loop.add_reader(self._fd, read)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(came.wait(), FRAME_SECONDS)
        finally:
            loop.remove_reader(self._fd)

    def watch(self, requests: StopRequests) -> None:
        """End the run when its owner goes without releasing it; called on the running event loop."""
        asyncio.get_running_loop().add_reader(self._fd, self._read, requests)
        self._take(b"", requests)

    def _read(self, requests: StopRequests) -> None:
        data = os.read(self._fd, _READ_BYTES)
        if data:
            self._take(data, requests)
            return
        asyncio.get_running_loop().remove_reader(self._fd)
        if self.waits:
            self.waits = False
            requests.drain("stopped because the process that started it was killed")
            asyncio.get_running_loop().call_later(OWNERLESS_DRAIN_SECONDS, requests.abandon)

    def _take(self, data: bytes, requests: StopRequests) -> None:
        *words, self._unread = (self._unread + data).split(b"\n")
        for word in words:
            if word == SHOWN:
                continue
            self.waits = False
            if word == HANG_UP:
                requests.drain("stopped because its terminal was closed")
