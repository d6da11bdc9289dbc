"""The viewer process behind one page of --web: keys and sizes go in, the terminal's picture comes out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence

from servetop.cli.viewing.viewer_signals import PAGE_SERVER

MOST_COLUMNS, MOST_LINES = 500, 200
"""A page's terminal is drawn no larger: its memory and its processor time grow with it."""
FEWEST = 2
LARGEST_PACKET = 16 << 20
"""Bytes that a viewer may send at once: its largest frame is a tenth of that."""
STOP_SECONDS = 3.0
"""A viewer that was asked to end and has not by then is killed."""
LAST_WORDS = 4096
"""Bytes of what a viewer complains of that are kept."""
_READY = b"__GANGLION__\n"
"""Textual's web driver says this first."""
_LINES_BEFORE_READY = 10


class ViewerProcess:
    """A viewer whose terminal is Textual's web driver: packets of a type, a length, a payload on standard streams."""

    def __init__(self, process: Process, size: tuple[int, int]) -> None:
        self._process = process
        self._size = size
        self._complaints = asyncio.ensure_future(_last_words(process.stderr))

    @classmethod
    async def start(cls, command: Sequence[str], *, width: int, height: int) -> ViewerProcess:
        """Start it, for a terminal of that size."""
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
        """Its number."""
        return self._process.pid

    async def pump(self, show: Callable[[bytes], Awaitable[None]]) -> None:
        """Hand on what it draws until it ends; one that does not read slows the viewer down."""
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
        """What the terminal's user typed, or did with the mouse."""
        await self._send(b"D", keys.encode("utf-8", "replace"))

    async def resize(self, width: int, height: int) -> None:
        """The page's terminal has another size."""
        size = clamped(width, height)
        if size != self._size:
            self._size = size
            await self._tell(type="resize", width=size[0], height=size[1])

    async def focus(self, *, gained: bool) -> None:
        """The page came to the front, or left it."""
        await self._tell(type="focus" if gained else "blur")

    async def stop(self) -> None:
        """Ask it to end; kill it if it does not."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._tell(type="quit")
                await self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await asyncio.wait({self._complaints}, timeout=STOP_SECONDS)

    async def complaint(self) -> str:
        """Its last words where it failed; to be asked once it has ended."""
        return await self._complaints if await self._process.wait() > 0 else ""

    async def _tell(self, **message: str | int) -> None:
        await self._send(b"M", json.dumps(message).encode())

    async def _send(self, kind: bytes, payload: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):
            stdin.write(kind + len(payload).to_bytes(4, "big") + payload)
            await stdin.drain()


async def _last_words(stream: asyncio.StreamReader | None) -> str:
    assert stream is not None
    kept = b""
    while data := await stream.read(LAST_WORDS):
        kept = (kept + data)[-LAST_WORDS:]
    return (kept.decode("utf-8", "replace").splitlines() or [""])[-1]


def clamped(width: int, height: int) -> tuple[int, int]:
    """Columns and lines within what a viewer draws."""
    return min(max(width, FEWEST), MOST_COLUMNS), min(max(height, FEWEST), MOST_LINES)
