"""The pipe from the owner of a run: carries the setup of the run first, and closes when the owner ends.

The owner is the process that started the run: a dashboard, or the server of its web pages. The pipe closes with the
owner however it ends, so that no run is left behind by accident.
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
"""The run continues without an owner."""
HANG_UP = b"hang up"
"""The terminal of the owner was closed: the run drains, and the owner does not wait for it."""
SHOWN = b"shown"
"""The owner has drawn its first frame, so the run may use the CPUs."""
AWAIT_FRAME = "--await-frame"
"""Option of the run process: start engine and senders only after SHOWN."""
FRAME_SECONDS = 3.0
"""Longest wait for SHOWN."""
OWNERLESS_DRAIN_SECONDS = 1.0
"""Seconds for the requests in flight to finish after the owner is gone, before they are cancelled."""
THROW_AWAY = "--throw-away"
"""Option of the run process: remove the folder of its recording at the end if no owner waits for the run."""
_READ_BYTES = 1 << 16


class OwnerPipe:
    """The run's end of the pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._unread = b""
        self.waits = True
        """Whether an owner waits for the end of the run."""

    def read_setup(self) -> Any:
        """Return the first line, decoded from JSON; UsageError if the pipe closes before it."""
        while b"\n" not in self._unread:
            data = os.read(self._fd, _READ_BYTES)
            if not data:
                raise UsageError("the setup of a run is expected as a line of JSON on standard input")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    async def frame_drawn(self) -> None:
        """Wait for any line, for the end of the owner, or for FRAME_SECONDS."""
        loop, received = asyncio.get_running_loop(), asyncio.Event()

        def read() -> None:
            data = os.read(self._fd, _READ_BYTES)
            self._unread += data
            if not data or b"\n" in self._unread:
                received.set()

        if b"\n" in self._unread:
            return
        loop.add_reader(self._fd, read)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(received.wait(), FRAME_SECONDS)
        finally:
            loop.remove_reader(self._fd)

    def watch(self, requests: StopRequests) -> None:
        """End the run if its owner ends without releasing it; call on the running event loop."""
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
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            if line == SHOWN:
                continue
            self.waits = False
            if line == HANG_UP:
                requests.drain("stopped because its terminal was closed")
