"""The viewer process behind one page of --web: receives keys and sizes, and sends the terminal's output."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence

from servetop.cli.viewing.viewer_signals import PAGE_SERVER

MOST_COLUMNS, MOST_LINES = 500, 200
"""Maximum size of a page's terminal: memory and processor time grow with it."""
FEWEST = 2
LARGEST_PACKET = 16 << 20
"""Bytes of one packet from a viewer; its largest frame is a tenth of that."""
STOP_SECONDS = 3.0
"""Seconds after which a viewer that should end is killed."""
ERROR_BYTES = 4096
"""Bytes of a viewer's error output that are kept."""
_READY = b"__GANGLION__\n"
"""The first line that Textual's web driver prints."""
_LINES_BEFORE_READY = 10


class ViewerProcess:
    """A viewer with Textual's web driver: packets of a type, a length and a payload on standard streams."""

    def __init__(self, process: Process, size: tuple[int, int]) -> None:
        self._process = process
        self._size = size
        self._error_lines = asyncio.ensure_future(_last_line(process.stderr))

    @classmethod
    async def start(cls, command: Sequence[str], *, width: int, height: int) -> ViewerProcess:
        """Starts a viewer for a terminal of this size."""
        columns, lines = clamped(width, height)
        environment = os.environ | {
            "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            PAGE_SERVER: str(os.getpid()),
            "COLUMNS": str(columns),
            "ROWS": str(lines),
        }
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment)
        return cls(process, (columns, lines))

    @property
    def pid(self) -> int:
        """The viewer's process id."""
        return self._process.pid

    async def pump(self, show: Callable[[bytes], Awaitable[None]]) -> None:
        """Forwards its output until it ends; a slow reader slows the viewer down."""
        output = self._process.stdout
        assert output is not None
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ValueError):
            for _ in range(_LINES_BEFORE_READY):
                if (await output.readline()) in (_READY, b""):
                    break
            while True:
                kind, length = await output.readexactly(1), int.from_bytes(await output.readexactly(4), "big")
                if length > LARGEST_PACKET:
                    self._process.kill()
                    return
                payload = await output.readexactly(length)
                if kind == b"D":
                    await show(payload)
                elif kind == b"M" and json.loads(payload).get("type") == "exit":
                    return

    async def type(self, keys: str) -> None:
        """Sends what the user typed, or did with the mouse."""
        await self._send(b"D", keys.encode("utf-8", "replace"))

    async def resize(self, width: int, height: int) -> None:
        """Sends a new size of the page's terminal."""
        size = clamped(width, height)
        if size != self._size:
            self._size = size
            await self._send_meta(type="resize", width=size[0], height=size[1])

    async def focus(self, *, gained: bool) -> None:
        """Sends that the page gained or lost the focus."""
        await self._send_meta(type="focus" if gained else "blur")

    async def stop(self) -> None:
        """Ends the viewer; kills it if it does not end in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._send_meta(type="quit")
                await self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await asyncio.wait({self._error_lines}, timeout=STOP_SECONDS)

    async def error(self) -> str:
        """Return the last line of its error output if it failed; call it once it has ended."""
        return await self._error_lines if await self._process.wait() > 0 else ""

    async def _send_meta(self, **message: str | int) -> None:
        await self._send(b"M", json.dumps(message).encode())

    async def _send(self, kind: bytes, payload: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):
            stdin.write(kind + len(payload).to_bytes(4, "big") + payload)
            await stdin.drain()


async def _last_line(stream: asyncio.StreamReader | None) -> str:
    assert stream is not None
    kept = b""
    while data := await stream.read(ERROR_BYTES):
        kept = (kept + data)[-ERROR_BYTES:]
    return (kept.decode("utf-8", "replace").splitlines() or [""])[-1]


def clamped(width: int, height: int) -> tuple[int, int]:
    """Columns and lines within the limits of a viewer."""
    return min(max(width, FEWEST), MOST_COLUMNS), min(max(height, FEWEST), MOST_LINES)
