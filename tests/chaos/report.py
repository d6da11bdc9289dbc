"""Prints the figures of an injector run and writes them between two marks of docs/reliability.md."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from servetop.run.manifest.versions import servetop_version
from tests.chaos.case import Case, Fault, Kind, Result
from tests.chaos.kinds import KINDS

BEGIN, END = "<!-- chaos: begin -->", "<!-- chaos: end -->"


@dataclass
class Tally:
    """The results of all cases of one kind."""

    kind: Kind
    cases: int = 0
    tried: int = 0
    failed: int = 0
    longest: float = 0.0
    """Seconds."""
    faults: Counter[Fault] = field(default_factory=Counter)

    def add(self, result: Result) -> None:
        self.cases += 1
        self.tried += result.tried
        self.failed += bool(result.findings)
        self.longest = max(self.longest, result.seconds)
        self.faults.update(finding.fault for finding in result.findings)

    def row(self, name: str) -> str:
        """One row of the table."""
        faults = " | ".join(str(self.faults[fault]) for fault in Fault)
        tried = f"{self.tried:,} {self.kind.unit}"
        return f"| {name} | {self.kind.what} | {tried} | {self.failed} | {faults} | {self.longest:.0f} s |"


@dataclass
class Figures:
    """The results of an injector run, so far."""

    seed: int
    cases: int
    over: bool = False
    findings: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """Number of cases that this machine cannot run, by reason."""
    tallies: dict[str, Tally] = field(default_factory=lambda: {name: Tally(kind) for name, kind in KINDS.items()})
    started: float = field(default_factory=time.monotonic)

    def add(self, case: Case, result: Result) -> None:
        self.tallies[case.kind].add(result)
        self.left_out.update(note for note in result.notes if note.startswith("left out"))
        self.findings += [f"`{case.name}`, {each.fault}: {_one_line(each.words)}" for each in result.findings]

    @property
    def done(self) -> int:
        """Number of cases that were run."""
        return sum(tally.cases for tally in self.tallies.values())

    def text(self) -> str:
        """Markdown; kinds that were not run are left out."""
        rows = [tally.row(name) for name, tally in self.tallies.items() if tally.cases]
        head = f"| kind | what | tried | cases with a finding | {' | '.join(Fault)} | longest case |"
        table = "\n".join([head, "|---" * head.count(" | ") + "|---|", *rows])
        findings = "\n\n" + "\n".join(f"- {each}" for each in self.findings) if self.findings else ""
        left_out = "".join(f"\n\n{count} cases {why}" for why, count in self.left_out.items())
        return f"{self._circumstances()}\n\n{self._sums()}\n\n{table}{left_out}{findings}"

    def _circumstances(self) -> str:
        minutes = (time.monotonic() - self.started) / 60.0
        version = f"servetop {servetop_version()} (commit {commit()})"
        head = f"{datetime.now(UTC):%Y-%m-%d}, {version}, seed {self.seed}, {minutes:.0f} minutes"
        left_out = f"{self.cases - self.done:,} of {self.cases:,} cases"
        if self.done == self.cases:
            return f"{head}, all {self.cases:,} cases:"
        return f"{head}, {left_out} left out:" if self.over else f"{head}, {left_out} still to come:"

    def _sums(self) -> str:
        tried: Counter[str] = Counter()
        for tally in self.tallies.values():
            tried[tally.kind.unit] += tally.tried
        faults = {fault: sum(tally.faults[fault] for tally in self.tallies.values()) for fault in Fault}
        counts = ", ".join(f"{count:,} {unit}" for unit, count in tried.items() if count)
        return f"Tried: {counts}. Found: {', '.join(f'{count} {fault}' for fault, count in faults.items())}."


def _one_line(words: str) -> str:
    """The end of a finding on one line: of a traceback, the error."""
    line = " ".join(words.split())
    return line if len(line) <= 300 else f"… {line[-300:]}"


def write_report(figures: Figures, *, to: str) -> None:
    """Print the figures; replace those in the file when one is named."""
    text = figures.text()
    sys.stdout.write(text + "\n")
    if to:
        replace_between(Path(to), text, BEGIN, END)


def replace_between(file: Path, text: str, begin: str, end: str) -> None:
    """Replace the text between two marks; ValueError if the file lacks them."""
    before, _, rest = file.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{file} has no {begin} … {end}")
    file.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
