"""The report of a reconciliation; `servetop reconcile --json`."""

from __future__ import annotations

from dataclasses import dataclass

from servetop.analysis.reconciliation.definitions import ReconciledMetric
from servetop.analysis.reconciliation.reconcile import reconcile
from servetop.analysis.reconciliation.waterfall import DifferenceWaterfall
from servetop.core.events import RequestStatus
from servetop.run.reconcile.tool_run import ToolRun, read_tool_run


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledInput:
    """One of the two results."""

    file: str
    """As given."""
    tool: str
    version: str | None
    requests: int
    """Requests sent, without warm-ups that the file marks as such."""
    completed: int
    truth: str | None
    """The file with the server's own times of its requests."""
    remarks: tuple[str, ...]
    """What is doubtful or derived in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciliationReport:
    """Why the figures of two load generators differ."""

    a: ReconciledInput
    b: ReconciledInput
    waterfalls: tuple[DifferenceWaterfall, ...]
    missing: tuple[ReconciledMetric, ...]
    """Figures that one of the results does not have, or of fewer than 30 requests."""
    conclusion: str


def reconcile_files(a: str, b: str, *, truths: tuple[str | None, str | None] = (None, None)) -> ReconciliationReport:
    """Read two results, and the server's account of each where given; UsageError or RecordingError if one cannot."""
    runs = (read_tool_run(a), read_tool_run(b))
    known = tuple(None if each is None else read_tool_run(each) for each in truths)
    first, second = (run.compared(truth) for run, truth in zip(runs, known, strict=True))
    found = reconcile(first, second)
    one, other = (_input(run, truth) for run, truth in zip(runs, truths, strict=True))
    return ReconciliationReport(
        a=one, b=other, waterfalls=found.waterfalls, missing=found.missing, conclusion=found.conclusion
    )


def _input(run: ToolRun, truth: str | None) -> ReconciledInput:
    return ReconciledInput(
        file=run.file,
        tool=run.tool,
        version=run.version,
        requests=len(run.requests),
        completed=sum(each.status is RequestStatus.OK for each in run.requests),
        truth=truth,
        remarks=tuple(run.remarks),
    )
