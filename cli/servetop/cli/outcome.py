"""How a run went, as it goes: what its exit code and last line will say."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.errors import ExitCode, ServetopError
from servetop.core.events import Action, RequestRecord, RequestStatus, RunEnd
from servetop.core.tick import ClientTick


class Outcome:
    """Counts what decides between success and failure."""

    def __init__(self) -> None:
        self.interruptions = 0
        """Requests to cancel what is in flight, so far: SIGINT, or a repeated SIGTERM."""
        self.drain_reason = ""
        """Why the run was told to drain, other than by a person who watches it; empty: it was not."""
        self.stopped_by: Action | None = None
        self._completed = 0
        self._failed = 0
        self._first_failure = ""

    def take(self, tick: ClientTick, records: Sequence[RequestRecord]) -> None:
        """Count a tick's requests and keep the first failure's reason."""
        self._completed += tick.ok
        self._failed += tick.failed
        failures = (RequestStatus.ERROR, RequestStatus.TIMEOUT, RequestStatus.TRUNCATED)
        if not self._first_failure:
            self._first_failure = next((r.error or r.status for r in records if r.status in failures), "")

    def end(self, at: float, failure: ServetopError | None) -> RunEnd:
        """The verdict; thresholds are judged later, from the summary."""
        if self.drain_reason:  # what asks servetop to end may ask its engine too, as systemd does
            return RunEnd(at=at, exit_code=int(ExitCode.INTERRUPTED), reason=self._drain_words(failure))
        if failure is not None:
            return RunEnd(at=at, exit_code=int(failure.exit_code), reason=str(failure))
        if self.interruptions or self.stopped_by is Action.CANCEL:
            return RunEnd(at=at, exit_code=int(ExitCode.INTERRUPTED), reason="interrupted")
        if self._failed and not self._completed:
            reason = f"no request succeeded, {self._failed:,} failed; the first: {self._first_failure}"
            return RunEnd(at=at, exit_code=int(ExitCode.RUN_FAILED), reason=reason)
        reason = "stopped early" if self.stopped_by is Action.STOP else ""
        return RunEnd(at=at, exit_code=int(ExitCode.OK), reason=reason)

    def _drain_words(self, failure: ServetopError | None) -> str:
        cancelled = "requests in flight were cancelled" if self.interruptions else ""
        return "; ".join(part for part in (self.drain_reason, cancelled, str(failure or "")) if part)
