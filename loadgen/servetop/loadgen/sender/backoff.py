"""What keeps a closed loop from spinning when every request fails at once."""

from __future__ import annotations

from servetop.core.events import RequestStatus
from servetop.loadgen.request.request_state import RequestState

_FIRST_SECONDS = 0.010
_LONGEST_SECONDS = 1.0


class Backoff:
    """After each failure in a row a closed loop waits twice as long, up to a second; a token ends the row."""

    def __init__(self) -> None:
        self.until = 0.0
        """Run time before which no free place is used."""
        self._seconds = 0.0

    def outcome(self, exchange: RequestState, at: float) -> bool:
        """Take an ended exchange into account; True when the wait has just reached its longest."""
        if exchange.status is not RequestStatus.ERROR or exchange.first_token_at is not None:
            self._seconds = 0.0
            return False
        before = self._seconds
        self._seconds = min(_LONGEST_SECONDS, max(_FIRST_SECONDS, 2 * before))
        self.until = max(self.until, at + self._seconds)
        return before < self._seconds == _LONGEST_SECONDS
