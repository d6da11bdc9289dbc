"""Starts sender processes, which load their modules while the run is still looking for its engine."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

from servetop.core.errors import LoadError

READ_BYTES = 1 << 20


async def spawn_sender(argv: Sequence[str]) -> Process:
    """Run a command that ends in `serve_sender`; it waits for its set-up. LoadError when it cannot be run."""
    try:
        return await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=READ_BYTES, start_new_session=True
        )
    except OSError as error:
        raise LoadError(f"the sender did not start ({error}): is {argv[0]} there?") from error


async def end_unused(process: Process) -> None:
    """End a sender process that was given no set-up."""
    if process.returncode is None:
        process.kill()
    await process.communicate()
