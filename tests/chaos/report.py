"""Figures of a whole injector run: printed, and written between two marks of docs/reliability.md."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos.case import Fault, Kind, Result

BEGIN, END = "<!-- chaos: begin -->", "<!-- chaos: end -->"
COLUMNS = ("lost", "invented", "traceback", "hang", "leftover", "memory", "escape")


@dataclass
class Tally:
    """What came of all cases of one kind."""

    kind: Kind
    cases: int = 0
    tried: int = 0
    failed: int = 0
    faults: Counter[Fault] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)

    def add(self, result: Result) -> None:
        self.cases += 1
        self.tried += result.tried
        self.failed += bool(result.findings)
        self.faults.update(finding.fault for finding in result.findings)
        self.notes.update(result.notes)


def table(tallies: Mapping[str, Tally]) -> str:
    """Markdown; kinds that were not run are left out."""
    head = f"| kind | what | tried | cases with a finding | {' | '.join(COLUMNS)} |"
    lines = [head, "|---" * (4 + len(COLUMNS)) + "|"]
    for name, tally in tallies.items():
        if tally.cases:
            faults = " | ".join(str(tally.faults[Fault(column)]) for column in COLUMNS)
            tried = f"{tally.tried:,} {tally.kind.unit}"
            lines.append(f"| {name} | {tally.kind.what} | {tried} | {tally.failed} | {faults} |")
    return "\n".join(lines)


def write_report(tallies: Mapping[str, Tally], *, seed: int, minutes: float, left_out: int, to: str) -> None:
    """Print the figures; replace those in the file when one is named."""
    head = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit()}, seed {seed}, {minutes:.0f} minutes"
    head += f", {left_out:,} cases left out for time:" if left_out else ":"
    text = f"{head}\n\n{table(tallies)}"
    sys.stdout.write(text + "\n")
    if to:
        replace_between(Path(to), text, BEGIN, END)


def replace_between(file: Path, text: str, begin: str, end: str) -> None:
    """Put a text between two marks; ValueError when the file lacks them."""
    before, _, rest = file.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{file} has no {begin} … {end}")
    file.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
