"""The notes about servers that cannot be watched: one line for all that fail for the same reason at about one time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from servetop.analysis.fleet.fleet_text import names_text
from servetop.core.events import Note, Severity

HOLD = 1.0
"""Seconds for which the first failure waits for others."""
UNREACHABLE = "nothing answers"
"""Begins the error of a server that cannot be reached."""
_ADVICE = ": is the server up?"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachFailure:
    """A server that was never watched, and why the newest attempt to attach to it failed."""

    at: float
    name: str
    url: str
    text: str

    @property
    def note(self) -> Note:
        """The note about this server alone."""
        return _warning(self.at, f"{self.name}: {self.text}")

    @property
    def kind(self) -> str:
        """What servers that fail for the same reason have in common: the error without the address."""
        return self.text.replace(self.url, "")

    @property
    def cause(self) -> str:
        """Why it failed, for several servers: without its address, and without advice, if nothing answers there."""
        if not self.text.startswith(UNREACHABLE):
            return self.text
        return self.text.partition(_ADVICE)[0].replace(f" at {self.url}", "")


class FailureNotes:
    """Collects failures, and gives them as notes once they have waited for HOLD."""

    def __init__(self) -> None:
        self._waiting: list[AttachFailure] = []

    def add(self, failures: Iterable[AttachFailure]) -> None:
        """Add failures of the newest time."""
        self._waiting.extend(failures)

    def take(self, now: float, *, listed: int, last: bool = False) -> list[Note]:
        """Return a note for each reason, of `listed` servers in all; nothing while the first failure still waits.

        `last`: nothing is waited for.
        """
        if not self._waiting or (now < self._waiting[0].at + HOLD and not last):
            return []
        by_kind: dict[str, list[AttachFailure]] = {}
        for each in self._waiting:
            by_kind.setdefault(each.kind, []).append(each)
        self._waiting = []
        return [alike[0].note if len(alike) == 1 else _of_several(alike, listed) for alike in by_kind.values()]


def _of_several(alike: Sequence[AttachFailure], listed: int) -> Note:
    first, urls = alike[0], list(dict.fromkeys(each.url for each in alike))
    what = "reached" if first.text.startswith(UNREACHABLE) else "watched"
    shown = names_text(urls, most=2)
    count = f"{len(urls)} of {max(listed, len(urls))} servers"
    return _warning(first.at, f"{count} cannot be {what}: {first.cause} ({shown})")


def _warning(at: float, text: str) -> Note:
    return Note(at=at, severity=Severity.WARNING, source="engine", text=text)
