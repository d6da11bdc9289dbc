"""The environment of a case: a folder with a home, a temporary folder and a recording; a server; and servetop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.case import Case, Fault, Result
from tests.chaos.ledger import Ledger, What
from tests.chaos.processes import LOOK_AROUND, MARK, end_marked, marked, peak_memory, until

ROOT = Path(__file__).parents[2]
CERTIFICATE = ROOT / "tests" / "loadgen" / "data" / "localhost"
ANOTHER_NAME = ROOT / "tests" / "chaos" / "certificates" / "elsewhere"
"""Of two certificates, the files without .crt and .key."""
PATIENCE = 240.0
"""Seconds within which anything ends that ends at all: a minute, and four times that on a shared machine."""
LONGEST = 900.0
"""Seconds after which a run counts as hung."""
GONE_WITHIN = 120.0
"""Seconds after which no process of a run may be left, on such a machine."""
OUR_WORDS = ("servetop: ", "OpenBLAS error: ")
"""What a last line begins with; where memory is too small to load NumPy, its library ends the process with its own."""
MOST_MEMORY = 700 << 20
"""Bytes that no process of a small run may exceed."""


@dataclass(frozen=True)
class Ended:
    """A command that is over."""

    code: int | None
    """None: it hung, and was killed."""
    out: str
    err: str

    @property
    def last_line(self) -> str:
        lines = [line for line in self.err.splitlines() if line.startswith(OUR_WORDS)]
        return lines[-1] if lines else ""


class Place:
    """The folder of one case, and what runs in it."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        self.mark = case.mark
        self.ledger_file = folder / "ledger"
        self.home = folder / "home"
        self.temporary = folder / "tmp"
        self.records = folder / "recordings"
        self.recording = self.records / "run.servetop"
        self.folder = folder
        self.memory = 0
        for each in (self.home, self.temporary, self.records):
            each.mkdir()

    @property
    def ledger(self) -> Ledger:
        return Ledger.read(self.ledger_file)

    def environment(self, more: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """A bare one with the case's mark; None takes a variable away."""
        basis: dict[str, str | None] = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SERVETOP_RECORDINGS": str(self.records),
            "PYTHONPATH": str(ROOT),
            "PYTHONFAULTHANDLER": "1",
            MARK: self.mark,
        }
        return {name: value for name, value in (basis | dict(more or {})).items() if value is not None}

    def server_words(self, *, mode: str = "honest", **options: str | float) -> list[str]:
        """The command line of a server that counts here."""
        given = {"ledger": self.ledger_file, "mode": mode, "seed": self.case.seed, **options}
        flags = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        return [sys.executable, "-m", "tests.chaos.server", *flags]

    @contextlib.contextmanager
    def server(self, *, mode: str = "honest", **options: str | float) -> Iterator[str]:
        """Start a separate server; return its URL. It does not have the mark, because servetop must not end it."""
        with (self.folder / "server.err").open("w") as err:
            process = subprocess.Popen(
                self.server_words(mode=mode, **options),
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.DEVNULL,
                stderr=err,
            )
        try:
            started = until(lambda: self.ledger.of(What.STARTED), seconds=PATIENCE)
            assert started, "the server under test did not start"
            yield f"{'https' if options.get('tls') else 'http'}://127.0.0.1:{started[-1].tokens}"
        finally:
            process.kill()
            process.wait()

    def start(
        self, words: Sequence[str], *, env: Mapping[str, str | None] | None = None, before: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """servetop with these words; `before` stands before it on the command line. Its output goes to files.

        A server under test counts what it receives, so none is asked first how it wants its requests.
        """
        if "--url" in words and "--endpoint" not in words:
            words = [*words, "--endpoint", "completions"]
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            return subprocess.Popen(
                [*before, sys.executable, "-m", "servetop", *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self.environment(env),
                start_new_session=True,
                cwd=self.folder,
            )

    def finish(self, process: subprocess.Popen[bytes], result: Result) -> Ended:
        """Wait for it while requests begin or end, and for all that it started; what is left then is a finding."""
        last = time.monotonic() + LONGEST
        over, seen = None, -1
        while not over and len(self.ledger.entries) > seen and time.monotonic() < last:
            seen = len(self.ledger.entries)
            over = until(lambda: self._over(process), seconds=PATIENCE, look_again=LOOK_AROUND)
        if not over:
            result.found(
                Fault.HANG, f"still running, and nothing came to an end for {PATIENCE:.0f} s: {marked(self.mark)}"
            )
            end_marked(self.mark)
            process.kill()
        code = process.wait()
        if over and not until(lambda: not marked(self.mark), seconds=GONE_WITHIN, look_again=LOOK_AROUND):
            result.found(Fault.LEFTOVER, f"{GONE_WITHIN:.0f} s after the end: {marked(self.mark)}")
        if self.memory > MOST_MEMORY:
            result.found(Fault.MEMORY, f"{self.memory >> 20} MiB in one process")
        end_marked(self.mark)
        return Ended(code if over else None, self.printed("out"), self.printed("err"))

    def _over(self, process: subprocess.Popen[bytes]) -> bool:
        self.memory = max(self.memory, peak_memory(marked(self.mark)))
        return process.poll() is not None

    def printed(self, name: str) -> str:
        file = self.folder / name
        return file.read_text(errors="surrogateescape") if file.exists() else ""

    def left_behind(self) -> list[str]:
        """Files that a run which ended in order has no use for: temporary ones, and its entry among the runs."""
        places = (self.temporary, self.home / ".local" / "state" / "servetop" / "runs")
        return [each.name for folder in places if folder.is_dir() for each in sorted(folder.iterdir())]

    def send(self, pid: int, number: signal.Signals) -> bool:
        """False: it no longer exists."""
        try:
            os.kill(pid, number)
        except OSError:
            return False
        return True
