"""Requests to end a run that come from outside its recording: signals, and an owner that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from servetop.core.events import Action
from servetop.run.outcome import Outcome

CANCEL_SECONDS = 5.0
"""How long the senders may take to report that they have cancelled what was in flight."""
HURRIED_CANCEL_SECONDS = 1.0
"""The same after a second interruption."""


class StopRequests:
    """Drain, cancel, or cancel without waiting: what was asked most urgently counts."""

    def __init__(self, outcome: Outcome, note: Callable[[str], None], hurry: Callable[[], None] = lambda: None) -> None:
        """`note` puts a drain's reason on the time line; `hurry` leaves the engine little time to end."""
        self._outcome = outcome
        self._note = note
        self._hurry = hurry
        self._load: asyncio.Future[None] | None = None

    def drain(self, reason: str) -> None:
        """Send nothing more and let requests in flight finish; the first reason counts."""
        if not self._outcome.drain_reason:
            self._outcome.drain_reason = reason
            self._note(reason)

    def abandon(self) -> None:
        """Cancel, and wait for nothing long: nobody is there who would wait for the run."""
        self._hurry()
        self.cancel()

    def cancel(self) -> None:
        """The first time: cancel what is in flight and end; the second time: do not wait for that."""
        self._outcome.interruptions += 1
        self._limit()

    @property
    def action(self) -> Action | None:
        """The most urgent request so far; None: the run was not asked to end."""
        if self._outcome.interruptions:
            return Action.CANCEL
        return Action.STOP if self._outcome.drain_reason else None

    async def play(self, load: asyncio.Future[None]) -> None:
        """Wait for the load to be over; a cancellation ends it even where the senders have stopped reporting."""
        self._load = load
        self._limit()
        await asyncio.wait({load})
        if not load.cancelled():
            load.result()

    def _limit(self) -> None:
        if self._load is not None and self._outcome.interruptions:
            patience = CANCEL_SECONDS if self._outcome.interruptions == 1 else HURRIED_CANCEL_SECONDS
            asyncio.get_running_loop().call_later(patience, self._load.cancel)
