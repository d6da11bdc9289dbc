"""One line of a run's story."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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

    @property
    def advice(self) -> bool:
        """Whether it says what to try."""
        return self.kind is LineKind.ADVICE
