"""A case of the fault injector: its name, its random numbers and its result."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Fault(StrEnum):
    """What a case can find."""

    LOST = "lost"
    """The server counted something that the recording lacks, without a reported reason."""
    INVENTED = "invented"
    """The recording, the summary or the exit code reports something that did not happen."""
    TRACEBACK = "traceback"
    HANG = "hang"
    LEFTOVER = "leftover"
    """A process or file that is no longer needed."""
    MEMORY = "memory"
    ESCAPE = "escape"
    """Control characters of a server's in what is printed."""


class Finding(NamedTuple):
    fault: Fault
    words: str


class Case(NamedTuple):
    """One of many of a kind; the same kind, number and seed do the same."""

    kind: str
    number: int
    seed: int
    injector: int = 0
    """Its process: two injectors on one machine do not end each other's processes."""

    @property
    def mark(self) -> str:
        return f"{self.injector}-{self.name}"

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.number}"

    def chance(self) -> random.Random:
        return random.Random(f"{self.seed}:{self.name}")


@dataclass
class Result:
    """What a case did and found; a case may try many inputs."""

    tried: int = 1
    findings: list[Finding] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    """Counts of what happened, by words of the kind's own."""
    seconds: float = 0.0
    """That it took."""

    def found(self, fault: Fault, words: str) -> None:
        self.findings.append(Finding(fault, words))

    def note(self, words: str, count: int = 1) -> None:
        self.notes[words] = self.notes.get(words, 0) + count


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of cases: how one is run (in a folder of its own), how many there are, how long one may take."""

    run: Callable[[Case, Path], Result]
    what: str
    unit: str = "runs"
    whole: int
    """Cases of the whole injector."""
    quick: int
    """Cases of its five-minute cut."""
    seconds: float = 1200.0
    """After these a case is ended from outside, as hung; it looks for hangs itself, and is never that slow."""
