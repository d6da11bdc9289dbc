"""How a run went, as it goes: what its exit code and last line will say."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from servetop.analysis.failure_reasons import FAILED, FailureTally
from servetop.core.errors import ExitCode, ServetopError
from servetop.core.events import Action, RequestRecord, RequestStatus, RunEnd, StageChange
from servetop.core.failure_limit import DEFAULT_MAX_FAILURES, FailureLimit

PRECEDENCE = (ExitCode.INTERRUPTED, ExitCode.ENGINE_FAILED, ExitCode.USAGE, ExitCode.RUN_FAILED, ExitCode.THRESHOLDS)
"""Of several things that went wrong, the first of these decides the exit code (docs/reference/exit-codes.md)."""


class RunPhase(StrEnum):
    """The phases of a run, in their usual order."""

    BOOTING = "booting"
    """The engine is being started or attached to."""
    RUNNING = "running"
    """The load is being played."""
    RESTARTING = "restarting"
    """The engine gets another batch size."""
    DRAINING = "draining"
    """Nothing more is sent; requests in flight finish."""
    STOPPING = "stopping"
    """The engine is being stopped and the recording closed."""


class Outcome:
    """Counts what decides between success and failure: the requests of this run, those of warm-up stages apart."""

    def __init__(self, max_failures: str = DEFAULT_MAX_FAILURES) -> None:
        self.interruptions = 0
        """Requests to cancel what is in flight, so far: SIGINT, or a repeated SIGTERM."""
        self.drain_reason = ""
        """Why the run was told to drain, other than by a person who watches it; empty: it was not."""
        self.stopped_by: Action | None = None
        self._max_failures = FailureLimit.parse(max_failures)
        self._warmups: set[int] = set()
        self._completed = 0
        self._deaths: list[str] = []
        self._failures = FailureTally()

    def take(
        self, records: Sequence[RequestRecord], stages: Sequence[StageChange] = (), deaths: Sequence[str] = ()
    ) -> None:
        """Count requests that ended, and note the stages that began and senders that died with what they had begun."""
        self._deaths += deaths
        self._warmups.update(stage.index for stage in stages if stage.warmup)
        for record in records:
            if record.stage in self._warmups:
                continue
            self._completed += record.status is RequestStatus.OK
            if record.status in FAILED:
                self._failures.add(record.status, record.error, http_status=record.http_status, at=record.done_at)

    def end(self, at: float, failure: ServetopError | None) -> RunEnd:
        """The verdict; thresholds are judged later, from the summary."""
        ends = [RunEnd(at=at, exit_code=int(ExitCode.OK), reason=self._stopped)]
        if self.drain_reason or self.interruptions or self.stopped_by is Action.CANCEL:
            ends.append(RunEnd(at=at, exit_code=int(ExitCode.INTERRUPTED), reason=self._interrupted(failure)))
        if failure is not None:
            ends.append(RunEnd(at=at, exit_code=int(failure.exit_code), reason=str(failure)))
        ends += [RunEnd(at=at, exit_code=int(ExitCode.RUN_FAILED), reason=words) for words in self._deaths]
        if words := self._too_many_failures():
            ends.append(RunEnd(at=at, exit_code=int(ExitCode.RUN_FAILED), reason=words))
        return decisive(ends)

    @property
    def _stopped(self) -> str:
        return "stopped early" if self.stopped_by is Action.STOP else ""

    def _interrupted(self, failure: ServetopError | None) -> str:
        """What asks servetop to end may ask its engine too, as systemd does: the engine's end is said as well."""
        is_cancelled = self.drain_reason and self.stopped_by is Action.CANCEL
        cancelled = "requests in flight were cancelled" if is_cancelled else ""
        return "; ".join(part for part in (self.drain_reason or "interrupted", cancelled, str(failure or "")) if part)

    def _too_many_failures(self) -> str:
        failed, ended = self._failures.total, self._failures.total + self._completed
        if not failed or (self._completed and not self._max_failures.is_exceeded(failed, ended)):
            return ""
        (most,) = self._failures.most_frequent(2)[:1]
        if not self._completed:
            return f"no request succeeded, {failed:,} failed; most often: {most.reason}"
        allowed = f"--max-failures {self._max_failures.text}"
        return f"{failed:,} of {ended:,} requests failed ({allowed}); most often ({most.count:,}): {most.reason}"


def decisive(ends: Sequence[RunEnd]) -> RunEnd:
    """The one whose exit code comes first in PRECEDENCE; of several with one code, with the reasons of all."""
    order = {code: place for place, code in enumerate(PRECEDENCE)}
    code = min((each.exit_code for each in ends), key=lambda each: order.get(ExitCode(each), len(order)))
    same = [each for each in ends if each.exit_code == code]
    return RunEnd(at=same[-1].at, exit_code=code, reason="; ".join(each.reason for each in same if each.reason))
