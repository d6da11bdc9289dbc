"""Under the tables of a summary: the trust verdict, the checks that do not apply, and why figures are missing."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.summary.summary_types import RunSummary, StageSummary
from servetop.analysis.summary.trust_types import EngineTimesSummary, TrustSummary
from servetop.analysis.trust.trust_check import CLIENT_CHECKS, ENGINE_CHECKS
from servetop.core.text import formats


def trust_lines(summary: RunSummary) -> list[str]:
    """The lines below the tables."""
    measured = summary.measured
    lines = _verdict_lines(measured.trust)
    if measured.requests.itl_reason:
        lines.append(f"no ITL     {measured.requests.itl_reason}")
    return [*lines, *_peaks_lines(measured.server.peaks_reason, summary.stages)]


def _verdict_lines(trust: TrustSummary) -> list[str]:
    """The verdict with its reasons or with what was compared, the check that was not judged, and what would help."""
    reasons = "; ".join(trust.reasons) or _agreement(trust.compared)
    lines = [
        f"trust      {trust.verdict}: {reasons}{f'; tokens by {trust.token_source}' if trust.token_source else ''}"
    ]
    if trust.sent_exemption and trust.sent_rate and trust.offered_rate:
        share = formats.percent(trust.sent_rate / trust.offered_rate)
        lines.append(f"not judged sent / offered {share}: {trust.sent_exemption}")
    lines += _engine_lines(trust.engine_times)
    return [*lines, f"senders    {trust.advice}"] if trust.advice else lines


def _agreement(compared: Sequence[str]) -> str:
    """Name what was compared, within the client and with the engine."""
    own, other = ([each for each in names.values() if each in compared] for names in (CLIENT_CHECKS, ENGINE_CHECKS))
    within = f"{_listed(own)} within limits" if own else "nothing of the client was compared"
    return f"{within}; {f'engine agrees in {_listed(other)}' if other else 'nothing of the engine was compared'}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _engine_lines(times: EngineTimesSummary) -> list[str]:
    """The engine's own mean latencies, and by how much those of the client differ."""
    pairs = {
        "TTFT": (times.engine_mean_ttft_ms, times.ttft_beyond_engine_ms),
        "TPOT": (times.engine_mean_tpot_ms, times.tpot_beyond_engine_ms),
        "E2EL": (times.engine_mean_e2el_ms, times.e2el_beyond_engine_ms),
    }
    texts = [
        f"{name} {engine:,.{1 if engine < 100 else 0}f} ms (client {beyond:+,.1f})"
        for name, (engine, beyond) in pairs.items()
        if engine is not None and beyond is not None
    ]
    return [f"engine     mean {', '.join(texts)}: network and HTTP server"] if texts else []


def _peaks_lines(reason: str | None, stages: tuple[StageSummary, ...]) -> list[str]:
    """Why the peaks of the run, or of some of its stages, are unknown."""
    if reason:
        return [f"no peaks   {reason}"]
    unseen = [stage.label for stage in stages if stage.measured.server.peaks_reason]
    why = "no page of the engine's metrics describes their load"
    return [f"no peaks   of {', '.join(unseen)}: {why}"] if unseen else []
