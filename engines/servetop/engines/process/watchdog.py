"""Runs an engine on a leash: `python leash.py CLEANUP COMMAND …`, with one end of a socket pair as standard input.

The process becomes COMMAND (its pid is the engine's). Before that it leaves a watcher behind, in a session of its
own, that holds the leash: when servetop's end closes without a word, servetop was killed, and the watcher stops
the engine's process group. PR_SET_PDEATHSIG alone would reach one process of the group, and only ask it. Then it
becomes CLEANUP, a command line in JSON; an empty one is none.

Started as a script with `-I -S`: standard library only, and as little of it as possible.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys

ALL_DONE = b"."
"""What servetop says before it lets go of a leash that is needed no longer."""
PATIENCE = 30
"""Tenths of a second between asking the group to end and ending it."""
_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Leave the watcher behind, then become the engine."""
    cleanup, *command = argv
    engine = os.getpid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            watch(engine, json.loads(cleanup))
        os._exit(0)
    os.wait()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        words = f"cannot run {command[0]}: {error.strerror}\n"
        sys.stderr.write(words)  # noqa: TID251 - servetop reads it from a pipe, as the engine's log
        return 127


def watch(group: int, cleanup: list[str]) -> None:
    """Hold the leash until servetop lets go; never returns."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)  # the engine's output ends when the engine does, not when we do
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        word = os.read(0, 1)
    except OSError:
        word = b""
    if word != ALL_DONE:
        end_group(group)
        if cleanup:
            os.execvp(cleanup[0], cleanup)
    os._exit(0)


def end_group(group: int) -> None:
    """Ask all processes of the group to end, then make them."""
    try:
        os.killpg(group, signal.SIGTERM)
        for _ in range(PATIENCE):
            select.select([], [], [], 0.1)
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # nobody is left


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
