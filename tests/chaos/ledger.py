"""The server's own count: one line for each event, appended at once, so that a kill loses none."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class What(StrEnum):
    """Events of a server's life, and of its requests."""

    STARTED = "S"
    RECEIVED = "Q"
    ENDING = "E"
    """The last bytes of an honest answer go out next: a server that is killed then does not write what became of it."""
    ANSWERED = "D"
    """To its end; the client must count it as a success with these tokens."""
    BROKEN = "B"
    """On purpose; the client must count it as a failure."""
    NO_ANSWER = "N"
    """Broken without a byte of an answer, or with a reset, which discards unread bytes: a client may send the request
    again on another connection."""
    ODD = "U"
    """Answered in a way that may be read as a success or as a failure."""
    GONE = "G"
    """The client closed the connection before the end."""
    STOP_REQUESTED = "X"


class Entry(NamedTuple):
    """One line; `at` is CLOCK_MONOTONIC, `number` a request's (or a server's process), `tokens` those sent so far."""

    what: What
    number: int
    at: float
    tokens: int = 0


class LedgerWriter:
    """Appends with one system call a line; several processes, one after the other, may write to one file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)

    def write(self, what: What, number: int, *, tokens: int = 0) -> None:
        os.write(self._file, f"{what.value} {number} {time.perf_counter():.6f} {tokens}\n".encode())


@dataclass(frozen=True)
class Ledger:
    """All that was counted, as it stands in the file now."""

    entries: Sequence[Entry] = field(default_factory=tuple)

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Whole lines only; no file is no entries."""
        text = path.read_text() if path.exists() else ""
        lines = [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]
        return cls([Entry(What(what), int(number), float(at), int(tokens)) for what, number, at, tokens in lines])

    def of(self, *kinds: What) -> list[Entry]:
        return [entry for entry in self.entries if entry.what in kinds]

    def count(self, *kinds: What) -> int:
        return len(self.of(*kinds))

    @property
    def unsettled_ends(self) -> int:
        """How many answers ended, or not, when their server was killed; the next server numbers its requests anew."""
        count, ending = 0, set[int]()
        for entry in self.entries:
            if entry.what is What.ENDING:
                ending.add(entry.number)
            elif entry.number in ending:
                ending.remove(entry.number)
                count += entry.what in (What.RECEIVED, What.STARTED)
        return count + len(ending)
