"""A command in a terminal of its own, which can be closed, and its output."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence

_ROWS, _COLUMNS = 40, 120


class Terminal:
    """The master's end of a pseudo-terminal whose other end is a command's controlling terminal; made by `run`."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self._output = bytearray()
        self._closed = threading.Event()
        self._wake, self._wake_write = os.pipe()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    @contextlib.contextmanager
    def run(cls, argv: Sequence[str], environment: Mapping[str, str]) -> Iterator[Terminal]:
        """Start a command; it is killed at the end if it still runs."""
        master, slave = os.openpty()
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-c", _ADOPT, *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(slave)
        terminal = cls(process, master)
        try:
            yield terminal
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            terminal.close()

    @property
    def text(self) -> str:
        """All that was printed so far, escape sequences included."""
        return self._output.decode("utf-8", "replace")

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def close(self) -> None:
        """Close the terminal, as when its window is closed: the command gets SIGHUP."""
        if not self._closed.is_set():
            self._closed.set()
            os.write(self._wake_write, b".")
            self._reader.join()
            for fd in (self._master, self._wake, self._wake_write):
                os.close(fd)

    def _read(self) -> None:
        while not self._closed.is_set():
            ready, _, _ = select.select([self._master, self._wake], [], [])
            if self._master in ready:
                try:
                    self._output += os.read(self._master, 1 << 16)
                except OSError:  # the other end is closed
                    return


_ADOPT = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Make the terminal that of the session, then become the command."""
