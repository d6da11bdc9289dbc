"""The phase of a run, and the outcome that decides its exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from servetop.analysis.failure_reasons import FAILED, FailureTally
from servetop.core.config_values.failure_limit import DEFAULT_MAX_FAILURES, FailureLimit
from servetop.core.errors import ExitCode, ServetopError
from servetop.core.events import Action, RequestRecord, RequestStatus, RunEnd, StageChange
from servetop.core.text.counted import counted, was_were

PRECEDENCE = (
    ExitCode.INTERRUPTED,
    ExitCode.ENGINE_FAILED,
    ExitCode.USAGE,
    ExitCode.RUN_FAILED,
    ExitCode.THRESHOLDS,
    ExitCode.CANNOT_TELL,
)
"""If several things go wrong, the first of these codes is the exit code (docs/reference/exit-codes.md)."""


class RunPhase(StrEnum):
    """The phases of a run, in their usual order."""

    BOOTING = "booting"
    """The engine is being started or attached to."""
    RUNNING = "running"
    """The load is being sent."""
    RESTARTING = "restarting"
    """The batch size of the engine is being changed."""
    DRAINING = "draining"
    """No more requests are sent; those in flight finish."""
    STOPPING = "stopping"
    """The engine is being stopped and the recording closed."""


class Outcome:
    """Counts what decides between success and failure: all requests but those of warm-up stages."""

    def __init__(self, max_failures: str = DEFAULT_MAX_FAILURES, *, per_cell: bool = False) -> None:
        """With `per_cell` the limit also holds for each stage, as in a sweep."""
        self.interruptions = 0
        """Number of requests to cancel the run: SIGINT, or a repeated SIGTERM."""
        self.drain_reason = ""
        """Why a signal or the end of the owner drained the run; empty if none did."""
        self.stopped_by: Action | None = None
        self._max_failures = FailureLimit.parse(max_failures)
        self._per_cell = per_cell
        self._warmups: set[int] = set()
        self._labels: dict[int, str] = {}
        self._ended_by_stage: Counter[int] = Counter()
        self._failed_by_stage: Counter[int] = Counter()
        self._completed = 0
        self._cancelled: Counter[str] = Counter()
        """Cancelled requests by the reason."""
        self._deaths: list[str] = []
        self._failures = FailureTally()

    def allow_failures(self, limit: str) -> None:
        """Replace the limit of failed requests, as when a search takes them for evidence."""
        self._max_failures = FailureLimit.parse(limit)

    def take(
        self, records: Sequence[RequestRecord], stages: Sequence[StageChange] = (), deaths: Sequence[str] = ()
    ) -> None:
        """Count requests that ended, and note stages that started and senders that died."""
        self._deaths += deaths
        self._warmups.update(stage.index for stage in stages if stage.warmup)
        self._labels.update((stage.index, stage.label) for stage in stages)
        for record in records:
            if record.stage in self._warmups:
                continue
            self._completed += record.status is RequestStatus.OK
            self._ended_by_stage[record.stage] += record.status is RequestStatus.OK or record.status in FAILED
            self._failed_by_stage[record.stage] += record.status in FAILED
            if record.status is RequestStatus.CANCELLED:
                self._cancelled[record.error or "cancelled"] += 1
            if record.status in FAILED:
                self._failures.add(record.status, record.error, http_status=record.http_status, at=record.done_at)

    def end(self, at: float, failure: ServetopError | None) -> RunEnd:
        """Return the end of the run; thresholds are checked later, from the summary."""
        ends = [RunEnd(at=at, exit_code=int(ExitCode.OK), reason=self._stopped)]
        if self.drain_reason or self.interruptions or self.stopped_by is Action.CANCEL:
            ends.append(RunEnd(at=at, exit_code=int(ExitCode.INTERRUPTED), reason=self._interrupted(failure)))
        if failure is not None:
            ends.append(RunEnd(at=at, exit_code=int(failure.exit_code), reason=str(failure)))
        ends += [RunEnd(at=at, exit_code=int(ExitCode.RUN_FAILED), reason=death) for death in self._deaths]
        if reason := self._too_many_failures() or self._all_cancelled():
            ends.append(RunEnd(at=at, exit_code=int(ExitCode.RUN_FAILED), reason=reason))
        return decisive(ends)

    @property
    def _stopped(self) -> str:
        return "stopped early" if self.stopped_by is Action.STOP else ""

    def _interrupted(self, failure: ServetopError | None) -> str:
        """Return the reason of an interruption; the engine's failure is included, as systemd may stop both at once."""
        is_cancelled = self.drain_reason and self.stopped_by is Action.CANCEL
        cancelled = "requests in flight were cancelled" if is_cancelled else ""
        return "; ".join(part for part in (self.drain_reason or "interrupted", cancelled, str(failure or "")) if part)

    def _too_many_failures(self) -> str:
        failed, ended = self._failures.total, self._failures.total + self._completed
        if not failed or (self._completed and not self._max_failures.is_exceeded(failed, ended)):
            return self._failed_cells() if self._per_cell else ""
        (most,) = self._failures.most_frequent(2)[:1]
        if not self._completed:
            return f"no request succeeded, {failed:,} failed; most often: {most.reason}"
        allowed = f"--max-failures {self._max_failures.text}"
        return (
            f"{failed:,} of {counted(ended, 'request')} failed ({allowed}); most often ({most.count:,}): {most.reason}"
        )

    def _all_cancelled(self) -> str:
        """Return why a load that was not stopped has no figures, although no request failed; empty if it has some."""
        if self._completed or not self._cancelled or self.stopped_by is not None:
            return ""
        ((most, _),) = self._cancelled.most_common(1)
        count = self._cancelled.total()
        return f"no request succeeded, {count:,} {was_were(count)} cancelled; most often: {most}"

    def _failed_cells(self) -> str:
        """Return the cells of a sweep of which more requests failed than the limit allows; empty if there is none."""
        counts = {stage: (failed, self._ended_by_stage[stage]) for stage, failed in self._failed_by_stage.items()}
        failing = [stage for stage, count in counts.items() if self._max_failures.is_exceeded(*count)]
        if not failing:
            return ""
        (most,) = self._failures.most_frequent(2)[:1]
        failed, ended = counts[failing[0]]
        more = f" (and {counted(len(failing) - 1, 'other cell')})" if len(failing) > 1 else ""
        cell = f"{failed:,} of {counted(ended, 'request')} of {self._labels.get(failing[0], 'a cell')}"
        return f"{cell} failed{more}; most often ({most.count:,}): {most.reason}"


def decisive(ends: Sequence[RunEnd]) -> RunEnd:
    """Return the end whose exit code comes first in PRECEDENCE, with the reasons of all ends with that code."""
    order = {code: place for place, code in enumerate(PRECEDENCE)}
    code = min((each.exit_code for each in ends), key=lambda each: order.get(ExitCode(each), len(order)))
    same = [each for each in ends if each.exit_code == code]
    return RunEnd(at=same[-1].at, exit_code=code, reason="; ".join(each.reason for each in same if each.reason))
