"""Exponential backoff for closed loops, which would otherwise spin when every request fails at once."""

from __future__ import annotations

_MIN_SECONDS = 0.010
_MAX_SECONDS = 1.0


class Backoff:
    """Doubles the delay of a closed loop after each consecutive error, up to a second; a token resets it."""

    def __init__(self) -> None:
        self.until = 0.0
        """Run time before which no free slot is used."""
        self._seconds = 0.0

    def ended(self, at: float, *, failed: bool) -> bool:
        """Account for a request that ended at `at`; return whether the delay has just reached its maximum.

        `failed`: the request ended with an error before its first token.
        """
        if not failed:
            self._seconds = 0.0
            return False
        before = self._seconds
        self._seconds = min(_MAX_SECONDS, max(_MIN_SECONDS, 2 * before))
        self.until = max(self.until, at + self._seconds)
        return before < self._seconds == _MAX_SECONDS
