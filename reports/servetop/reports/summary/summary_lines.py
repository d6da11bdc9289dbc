"""The lines below the tables of a summary: trust, missing figures, steady state, story and dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from servetop.analysis.summary.story_summary import StoryLineSummary, StorySummary
from servetop.analysis.summary.summary_types import DatasetSummary, RunSummary, SkippedSummary, StageSummary
from servetop.analysis.summary.trust_types import EngineTimesSummary, TrustSummary
from servetop.analysis.sweep.cell_checks import CELL_MARKS, CellChecks, CellOutcome
from servetop.analysis.trust.trust_check import CLIENT_CHECKS, ENGINE_CHECKS
from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.core.text.sanitize import sanitize_line
from servetop.reports.markdown import escaped

MOST_CELLS = 12
"""Cells that miss a threshold or are not decided, of which each has a line."""
_TOKENS = {
    "ordinary": "ordinary tokens of the model",
    "unchecked": "token ids that may include special tokens (the tokenizer is unknown)",
}


def trust_lines(summary: RunSummary) -> list[str]:
    """Return the trust verdict, the checks that do not apply, and why figures are missing."""
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
    """Return the engine's own mean latencies, and by how much those of the client differ."""
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
    """Return why the peaks of the run, or of some of its stages, are unknown."""
    if reason:
        return [f"no peaks   {reason}"]
    unseen = [stage.label for stage in stages if stage.measured.server.peaks_reason]
    why = "no page of the engine's metrics describes their load"
    return [f"no peaks   of {', '.join(unseen)}: {why}"] if unseen else []


def steady_lines(stages: Sequence[StageSummary]) -> list[str]:
    """Return why stages had no steady state, one line for each reason; failed cells are listed apart."""
    return [f"steady     none{each}" for each in _unsteady(stages)]


def unsteady_sentences(stages: Sequence[StageSummary]) -> list[str]:
    """Return the same as `steady_lines` without columns: `no steady state in 8 req/s: the stage is too short`."""
    return [f"no steady state{each}" for each in _unsteady(stages)]


def _unsteady(stages: Sequence[StageSummary]) -> list[str]:
    """Return ` in `, the stages and the reason, for each reason; of a run's only stage the reason alone."""
    labels: dict[str, list[str]] = {}
    for stage in stages:
        if stage.steady.start is None and stage.failure is None:
            labels.setdefault(str(stage.steady.reason), []).append(stage.label)
    several = len(stages) > 1
    return [f"{f' in {_named(names)}' if several else ''}: {reason}" for reason, names in labels.items()]


def _named(labels: Sequence[str]) -> str:
    return ", ".join(labels[:2]) if len(labels) <= 2 else f"{labels[0]} and {len(labels) - 1} more"


def story_lines(story: StorySummary) -> list[str]:
    """Return the headline, then each line with its time; advice is marked by an arrow."""
    return [
        f"verdict    {sanitize_line(story.headline)}",
        *(f"{_mark(line):>9}  {sanitize_line(line.text)}" for line in story.lines),
    ]


def story_markdown(story: StorySummary) -> list[str]:
    """Return the headline in bold, then a list."""
    items = (f"- {f'{_mark(line)} '.lstrip()}{escaped(line.text)}" for line in story.lines)
    return [f"**{escaped(story.headline)}**", "", *items]


def _mark(line: StoryLineSummary) -> str:
    if line.advice:
        return "→"
    return "" if line.at is None else formats.clock(line.at)


def dataset_lines(found: DatasetSummary | None) -> Iterator[str]:
    """Yield one line: name, file, rows, and what random prompts consist of; none without a dataset to name."""
    if found is None:
        return
    parts = [f"{found.name}, {sanitize_line(found.file)}" if found.file else found.name]
    for count, what in (
        (found.rows_used, "rows used"),
        (found.rows_skipped or None, "bad rows skipped"),
        (found.rows_left_out or None, "rows left out"),
    ):
        parts += [f"{count:,} {what if count != 1 else what.replace('rows', 'row')}"] if count is not None else []
    parts += [_TOKENS[found.random_tokens]] if found.random_tokens in _TOKENS else []
    if len(parts) > 1:
        yield f"dataset    {' · '.join(parts)}"


def threshold_lines(checks: CellChecks | None) -> Iterator[str]:
    """Yield how many cells of a sweep keep their thresholds, and the others with what decides them."""
    if checks is None:
        return
    yield f"thresholds {checks.headline}"
    others = [cell for cell in checks.cells if cell.outcome is not CellOutcome.KEPT]
    for cell in others[:MOST_CELLS]:
        yield f"{CELL_MARKS[cell.outcome]:>9}  {sanitize_line(cell.text)}"
    if len(others) > MOST_CELLS:
        yield f"{'':>9}  and {len(others) - MOST_CELLS} more (--json lists all)"


def skipped_lines(cells: Sequence[SkippedSummary]) -> list[str]:
    """Return one line for each row of a sweep that ended, as in `3 cells skipped: p99 TTFT 812 ms > 500 ms at ...`."""
    rows = Counter((each.stage, each.reason) for each in cells)
    return [f"until      {counted(count, 'cell')} skipped: {reason}" for (_, reason), count in rows.items()]
