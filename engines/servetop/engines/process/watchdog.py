"""Watchdog of an engine: `python watchdog.py`, with one end of a socket pair as standard input.

servetop sends two command lines through the socket, COMMAND and CLEANUP. They are not arguments of the watchdog, which
lives as long as the run: all users of the machine could read secrets in them, also those that the engine removes from
its own command line, as `env` does.

The process forks a watchdog into a session of its own, then executes COMMAND under its own pid. If servetop's end of
the socket closes without `ALL_DONE`, servetop was killed, and the watchdog stops the engine's process group;
PR_SET_PDEATHSIG alone would signal only one process of the group. It then executes CLEANUP, unless that is empty.

It runs as a script with `-I -S`, so it imports little, and only from the standard library.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
from collections.abc import Sequence

ALL_DONE = b"."
"""Sent by servetop when the watchdog is no longer needed."""
KILL_AFTER = 30
"""Tenths of a second between SIGTERM and SIGKILL."""
_PR_SET_PDEATHSIG = 1
_LENGTH_BYTES = 4


def request_of(command: Sequence[str], cleanup: Sequence[str]) -> bytes:
    """Encode what servetop sends first: JSON with its length in front, so that nothing later is read with it."""
    text = json.dumps([list(command), list(cleanup)]).encode()
    return len(text).to_bytes(_LENGTH_BYTES, "big") + text


def main() -> int:
    """Fork the watchdog, then execute the engine."""
    engine = os.getpid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    text = _read(int.from_bytes(_read(_LENGTH_BYTES), "big"))
    if not text:
        return 0  # servetop is gone
    command, cleanup = json.loads(text)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            watch_parent(engine, cleanup)
        os._exit(0)
    os.wait()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        message = f"cannot run {command[0]}: {error.strerror}\n"
        sys.stderr.write(message)  # noqa: TID251 - servetop reads it from a pipe, as the engine's log
        return 127


def _read(size: int) -> bytes:
    """Read this many bytes from standard input; none if it ends before."""
    found = b""
    while len(found) < size:
        part = os.read(0, size - len(found))
        if not part:
            return b""
        found += part
    return found


def watch_parent(group: int, cleanup: list[str]) -> None:
    """Wait until servetop exits or sends ALL_DONE, then clean up; never returns."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)  # so the engine's output pipe closes when the engine exits
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        received = os.read(0, 1)
    except OSError:
        received = b""
    if received != ALL_DONE:
        stop_group(group)
        if cleanup:
            os.execvp(cleanup[0], cleanup)
    os._exit(0)


def stop_group(group: int) -> None:
    """Send SIGTERM to the process group, then SIGKILL to what remains."""
    try:
        os.killpg(group, signal.SIGTERM)
        for _ in range(KILL_AFTER):
            select.select([], [], [], 0.1)
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # no process is left


if __name__ == "__main__":
    sys.exit(main())
