"""Ends dashboards, and the runs behind them, at random times: a run without its owner ends itself cleanly."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import sys
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.case import Case, Fault, Result
from tests.chaos.invariants import Harm, check_recording
from tests.chaos.ledger import What
from tests.chaos.place import GONE_WITHIN, MOST_MEMORY, PATIENCE, Ended, Place
from tests.chaos.processes import LOOK_AROUND, end_marked, marked, peak_memory, until

BLOWS = ("kill viewer", "kill viewer", "kill viewer", "SIGTERM", "SIGINT", "close terminal", "kill run", "quit")
LONG = "300"
"""Seconds of load: nothing ends because it was over."""
ENDS_WITHIN = 300.0
"""Seconds for a run to notice that its owner is gone, and to end; documented as seconds, on a shared machine."""
RUN = "servetop.run.run_process"


@dataclass
class Terminal:
    """A dashboard in its own terminal; only the end of its output is kept."""

    pid: int
    master: int
    drawn: bytes = b""
    code: int | None = None

    def read(self) -> None:
        """Read until all writers have closed, in a thread."""
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 1 << 16):
                self.drawn = (self.drawn + data)[-(1 << 16) :]

    def press(self, keys: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self.master, keys)

    def close(self) -> None:
        """As when its window is closed."""
        with contextlib.suppress(OSError):
            os.close(self.master)

    def over(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None


@contextlib.contextmanager
def dashboard(place: Place, words: list[str]) -> Iterator[Terminal]:
    """servetop with these words in a terminal of 120 by 40."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(place.folder)
        os.execve(sys.executable, [sys.executable, "-m", "servetop", *words], place.environment())
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    terminal = Terminal(pid, master)
    reader = threading.Thread(target=terminal.read, daemon=True)
    reader.start()
    try:
        yield terminal
    finally:
        end_marked(place.mark)
        until(terminal.over, seconds=PATIENCE)
        terminal.close()
        reader.join(5.0)


def viewer(case: Case, folder: Path) -> Result:
    """One dashboard, one blow."""
    chance = case.chance()
    place, result = Place(case, folder), Result()
    blow = chance.choice(BLOWS)
    result.note(blow)
    words = ["--duration", LONG, "--request-rate", "20", "--input-len", "6", "--output-len", "5"]
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(place.server())
        terminal = stack.enter_context(dashboard(place, [*words, "--url", url, "--record", str(place.recording)]))
        if (
            until(lambda: place.ledger.count(What.RECEIVED) > 0 or terminal.over(), seconds=PATIENCE)
            and terminal.over()
        ):
            result.found(Fault.LOST, f"the dashboard ended before the load, with {terminal.code}: {_end_of(terminal)}")
            return result
        time.sleep(chance.uniform(0.0, 1.5))
        if (memory := peak_memory(marked(place.mark))) > MOST_MEMORY:
            result.found(Fault.MEMORY, f"{memory >> 20} MiB in one process")
        _strike(blow, terminal, place)
        if not until(lambda: not marked(place.mark), seconds=ENDS_WITHIN, look_again=LOOK_AROUND):
            result.found(Fault.LEFTOVER, f"{ENDS_WITHIN:.0f} s after “{blow}”: {marked(place.mark)}")
        _check(blow, terminal, place, result)
    return result


def _strike(blow: str, terminal: Terminal, place: Place) -> None:
    match blow:
        case "kill viewer":
            place.send(terminal.pid, signal.SIGKILL)
        case "close terminal":
            terminal.close()
        case "quit":
            until(lambda: _quits(terminal), seconds=PATIENCE)
        case "kill run":
            for pid, command in marked(place.mark).items():
                if RUN in command:
                    place.send(pid, signal.SIGKILL)
            time.sleep(1.0)
            place.send(terminal.pid, signal.SIGTERM)
        case name:
            place.send(terminal.pid, signal.Signals[name])


def _quits(terminal: Terminal) -> bool:
    """Quits with q, then chooses with d to let the requests in flight finish."""
    terminal.press(b"q")
    time.sleep(0.5)
    terminal.press(b"d")
    time.sleep(0.5)
    return terminal.over()


def _check(blow: str, terminal: Terminal, place: Place, result: Result) -> None:
    until(terminal.over, seconds=GONE_WITHIN)
    if b"Traceback" in terminal.drawn:
        result.found(Fault.TRACEBACK, _end_of(terminal))
    check_recording(place, Ended(None, "", ""), result, harm=Harm.ENDED)
    if blow != "kill run" and "recordings without an end" in result.notes:
        result.found(Fault.LOST, f"“{blow}” left a recording without an end")


def _end_of(terminal: Terminal) -> str:
    return terminal.drawn[-2500:].decode("utf-8", "replace")
