"""An engine that plans an iteration after all requests that arrive at its start, as a prediction does."""

from __future__ import annotations

from servetop.simulator.server.realtime import RealTimeEngine


class BoundaryEngine(RealTimeEngine):
    """Puts each plan off to a call of `wake` at the same time, before which requests may arrive."""

    _plan_at: float | None = None
    """Time of the plan that was put off."""

    def wake(self) -> None:
        """Make the plan that was put off, or run the iterations that are due; schedule the next call."""
        at, self._plan_at = self._plan_at, None
        if at is None:
            super().wake()
        else:
            super()._plan(at)
            self._arm()

    def _plan(self, at: float) -> None:
        self._work, self._idle_since, self._plan_at = None, at, at

    def _arm(self) -> None:
        if self._plan_at is None:
            super()._arm()
        else:
            self._wake_at(self._plan_at)
