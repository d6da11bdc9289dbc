"""A request that has not ended yet, as a sender knows it at the end of a tick."""

from __future__ import annotations

from dataclasses import dataclass

MOST_IN_FLIGHT = 300
"""Requests in flight that are reported, at most: those submitted last."""
TICKS_BETWEEN = 4
"""They are reported once in this many ticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestInFlight:
    """A request as of the time `at`; instants in seconds since the run's origin, None if it did not get that far."""

    at: float
    id: int
    stage: int
    """Index of the stage in which the request was due."""
    due: float
    sent: float | None = None
    first_token_at: float | None = None
    last_token_at: float | None = None
    """Arrival of the newest chunk with tokens."""
    prompt_tokens: int
    """As planned, or as reported by the server."""
    output_tokens: int = 0
    """Tokens received by then, counted from the chunks."""
