"""The outcome of everything that is checked: limits, thresholds and rules."""

from __future__ import annotations

from enum import StrEnum


class CheckOutcome(StrEnum):
    """Whether what was checked is kept, in order of importance."""

    BROKEN = "broken"
    CANNOT_TELL = "cannot tell"
    """It applies, but what it needs was not measured, or not for long enough."""
    KEPT = "kept"
    NOT_APPLICABLE = "not applicable"
    """It has no meaning for this load or engine."""
