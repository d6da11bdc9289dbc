"""Under the tables of a summary: the trust verdict, the checks that do not apply, and why figures are missing."""

from __future__ import annotations

from servetop.analysis.summary.summary_types import RunSummary, StageSummary, TrustSummary
from servetop.tui.drawing import formats


def trust_lines(summary: RunSummary) -> list[str]:
    """The lines below the tables."""
    measured = summary.measured
    lines = _verdict_lines(measured.trust)
    if measured.requests.itl_reason:
        lines.append(f"no ITL     {measured.requests.itl_reason}")
    return [*lines, *_peaks_lines(measured.server.peaks_reason, summary.stages)]


def _verdict_lines(trust: TrustSummary) -> list[str]:
    """The verdict with its reasons, and the check that was not judged."""
    reasons = "; ".join(trust.reasons) or "slip, loop lag, rates and engine counters agree"
    lines = [
        f"trust      {trust.verdict}: {reasons}{f'; tokens by {trust.token_source}' if trust.token_source else ''}"
    ]
    if trust.sent_exemption and trust.sent_rate and trust.offered_rate:
        share = formats.percent(trust.sent_rate / trust.offered_rate)
        lines.append(f"not judged sent / offered {share}: {trust.sent_exemption}")
    return lines


def _peaks_lines(reason: str | None, stages: tuple[StageSummary, ...]) -> list[str]:
    """Why the peaks of the run, or of some of its stages, are unknown."""
    if reason:
        return [f"no peaks   {reason}"]
    unseen = [stage.label for stage in stages if stage.measured.server.peaks_reason]
    return [f"no peaks   of {', '.join(unseen)}: no scrape of the engine's metrics while they ran"] if unseen else []
