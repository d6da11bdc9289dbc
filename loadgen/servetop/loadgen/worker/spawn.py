"""Starts sender processes, which load their modules while the run loads its own and looks for its engine.

What imports asyncio is loaded when it is needed: the first sender is started before it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from servetop.core.errors import LoadError

if TYPE_CHECKING:
    import asyncio

READ_BYTES = 1 << 20


def spawn_sender(argv: Sequence[str]) -> Spawned:
    """Run a command that ends in `serve_sender`; it waits for its set-up. LoadError when it cannot be run."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True)
    except OSError as error:
        raise LoadError(f"the sender did not start ({error}): is {argv[0]} there?") from error
    return Spawned(process)


class Spawned:
    """A sender's process; its streams are there after `connect`."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        """None while it lives."""
        return self._process.poll()

    async def connect(self) -> None:
        """Let the running event loop read and write its pipes."""
        import asyncio

        loop, process = asyncio.get_running_loop(), self._process
        replies = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await loop.connect_write_pipe(lambda: replies, process.stdin)
        self.stdin = asyncio.StreamWriter(transport, replies, None, loop)
        self.stdout, self.stderr = asyncio.StreamReader(READ_BYTES), asyncio.StreamReader(READ_BYTES)
        for stream, pipe in ((self.stdout, process.stdout), (self.stderr, process.stderr)):
            protocol = asyncio.StreamReaderProtocol(stream)
            await loop.connect_read_pipe(lambda protocol=protocol: protocol, pipe)  # type: ignore[misc]

    async def wait(self) -> int:
        """The exit code, once it has ended."""
        import asyncio

        return await asyncio.to_thread(self._process.wait)

    def kill(self) -> None:
        """End it, whatever it is doing."""
        self._process.kill()

    def end_unused(self) -> None:
        """End a process that was given no set-up, and was not connected."""
        self.kill()
        self._process.communicate()
