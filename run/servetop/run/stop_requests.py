"""Requests to end a run that do not come through its recording: signals, and the loss of its owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from servetop.core.events import Action
from servetop.run.outcome import Outcome

CANCEL_SECONDS = 5.0
"""Time limit for the senders to report that they have cancelled the requests in flight."""
HURRIED_CANCEL_SECONDS = 1.0
"""The time limit after a second interruption."""


class StopRequests:
    """Drain, cancel, or cancel without waiting: the most urgent request applies."""

    def __init__(self, outcome: Outcome, note: Callable[[str], None], hurry: Callable[[], None] = lambda: None) -> None:
        """`note` records the reason of a drain; `hurry` shortens the grace period of the engine."""
        self._outcome = outcome
        self._note = note
        self._hurry = hurry
        self._load: asyncio.Future[None] | None = None

    def drain(self, reason: str) -> None:
        """Send no more requests and let those in flight finish; the first reason applies."""
        if not self._outcome.drain_reason:
            self._outcome.drain_reason = reason
            self._note(reason)

    def abandon(self) -> None:
        """Cancel with a short grace period, because the user does not wait for the run."""
        self._hurry()
        self.cancel()

    def cancel(self) -> None:
        """Cancel the requests in flight and end the run; a second call does not wait for them."""
        self._outcome.interruptions += 1
        self._start_timer()

    @property
    def action(self) -> Action | None:
        """The most urgent request so far; None if there was none."""
        if self._outcome.interruptions:
            return Action.CANCEL
        return Action.STOP if self._outcome.drain_reason else None

    async def wait_for(self, load: asyncio.Future[None]) -> None:
        """Wait for the load to end; a cancellation ends it even if the senders have stopped reporting."""
        self._load = load
        self._start_timer()
        await asyncio.wait({load})
        if not load.cancelled():
            load.result()

    def _start_timer(self) -> None:
        if self._load is not None and self._outcome.interruptions:
            limit = CANCEL_SECONDS if self._outcome.interruptions == 1 else HURRIED_CANCEL_SECONDS
            asyncio.get_running_loop().call_later(limit, self._load.cancel)
