"""One line of a run's story, as planned by a rule and as printed with the evidence for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from servetop.analysis.diagnosis.clauses import Clause, Part, supported
from servetop.analysis.diagnosis.observation import Observation


class LineKind(StrEnum):
    """What a line is for."""

    CAUSE = "cause"
    """It says what limited the run."""
    FACT = "fact"
    DETAIL = "detail"
    """It is omitted if there are too many lines."""
    ADVICE = "advice"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryLine:
    """One sentence, and the time that it is about."""

    at: float | None
    """Seconds since the run's origin; None for the whole run."""
    known_at: float | None = None
    """When it was known, if that was later: from then on the verdict of the time shown says so."""
    text: str
    kind: LineKind = LineKind.FACT
    clauses: tuple[Clause, ...] = ()
    """Its statements, all of them with their evidence observed."""

    @property
    def advice(self) -> bool:
        """Whether it says what to try."""
        return self.kind is LineKind.ADVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLine:
    """A line before its evidence is checked."""

    at: float | None
    known_at: float | None = None
    parts: Sequence[Part]
    separator: str = ", "
    last_separator: str | None = None
    """What stands before the last phrase; None for `separator`."""
    kind: LineKind = LineKind.FACT

    def printed(self, known: frozenset[Observation]) -> StoryLine | None:
        """Return the line with the phrases whose evidence was observed; None if none is left."""
        phrases = supported(self.parts, known)
        if not phrases:
            return None
        *first, last = [phrase.text for phrase in phrases]
        before = self.separator if self.last_separator is None else self.last_separator
        text = f"{self.separator.join(first)}{before}{last}" if first else last
        clauses = tuple(phrase.clause for phrase in phrases)
        return StoryLine(at=self.at, known_at=self.known_at, text=text, kind=self.kind, clauses=clauses)
