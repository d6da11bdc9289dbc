"""Starts sender processes, which import their modules while the run imports its own and finds its engine.

The first sender is started before asyncio is imported, so asyncio is imported only where it is needed.
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
    """Start a command that runs `serve_sender`, which waits for its setup; LoadError if it cannot be started."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True)
    except OSError as error:
        raise LoadError(f"cannot start the sender process ({error}): does {argv[0]} exist?") from error
    return Spawned(process)


class Spawned:
    """A sender's process; its streams exist after `connect`."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._outputs: list[asyncio.ReadTransport] = []
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        """Exit code; None while the process runs."""
        return self._process.poll()

    async def connect(self) -> None:
        """Connect the process's pipes to the running event loop."""
        import asyncio

        loop, process = asyncio.get_running_loop(), self._process
        replies = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await loop.connect_write_pipe(lambda: replies, process.stdin)
        self.stdin = asyncio.StreamWriter(transport, replies, None, loop)
        self.stdout, self.stderr = asyncio.StreamReader(READ_BYTES), asyncio.StreamReader(READ_BYTES)
        for stream, pipe in ((self.stdout, process.stdout), (self.stderr, process.stderr)):
            protocol = asyncio.StreamReaderProtocol(stream)
            output, _ = await loop.connect_read_pipe(lambda protocol=protocol: protocol, pipe)  # type: ignore[misc]
            self._outputs.append(output)

    def disconnect(self) -> None:
        """Close the pipes from a process that has ended: uvloop keeps them open after their end."""
        for output in self._outputs:
            output.close()

    async def wait(self) -> int:
        """Wait for the process to end and return its exit code."""
        import asyncio

        return await asyncio.to_thread(self._process.wait)

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def end_unused(self) -> None:
        """Kill a process that received no setup and was not connected."""
        self.kill()
        self._process.communicate()
