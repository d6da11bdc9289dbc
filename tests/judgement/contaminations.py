"""Pairs of runs that differ in one contaminated condition or in none, and how often that condition is named.

`python -m tests.judgement.contaminations --seed 11 12 13 --cases 100` prints the table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from servetop.analysis.columns.request_columns import PER_REQUEST, STATUSES, RequestColumns, StageRequests
from servetop.analysis.confounding.conditions import RunConditions
from servetop.analysis.confounding.confounder import ConfounderKind
from servetop.analysis.confounding.confounders import confounders
from servetop.analysis.confounding.measure import RunEvidence, measure_conditions
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.statistics.percentiles import Distribution
from servetop.core.arrays import FloatArray
from servetop.core.events import EngineSample
from servetop.recordings.read.load_attempts import with_ends
from servetop.recordings.read.load_run import stage_periods
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.load_comparison import RecordedColumns
from servetop.simulator.virtual_run.virtual_run import VirtualRun
from tests.judgement.contaminated_pairs import CONTAMINATIONS, Pair, draw_pair
from tests.judgement.recordings import write_recording
from tests.judgement.report_page import say, write_between_marks

RECORDED_EVERY = 5
"""One of so many pairs is written as two recordings and loaded again."""
SHARE_NAMED = 0.95
MARK = "<!-- contaminations -->"
"""Encloses the table in the page."""
CLEAN = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairScore:
    """What was named for one pair."""

    name: str
    planted: ConfounderKind | None
    named: frozenset[ConfounderKind]
    texts: tuple[str, ...]
    detail: str

    @property
    def found(self) -> bool:
        """Whether the planted contamination was named."""
        return self.planted in self.named

    @property
    def others(self) -> frozenset[ConfounderKind]:
        """What was named and not planted."""
        return self.named - {self.planted}


def judge_contaminations(
    seed: int, cases: int, *, kinds: Sequence[ConfounderKind | None] = (None, *CONTAMINATIONS)
) -> Iterator[PairScore]:
    """Judge `cases` pairs of each kind; None is a clean pair."""
    for kind in kinds:
        for number in range(cases):
            yield judge_pair(draw_pair(kind, number, seed=seed), recorded=number % RECORDED_EVERY == 0)


def judge_pair(pair: Pair, *, recorded: bool = False) -> PairScore:
    """Compare the two runs of a pair, from recordings if `recorded`."""
    a, b = (_recorded_conditions(run) if recorded else conditions_of(run) for run in pair.runs)
    found = confounders(a, b)
    return PairScore(
        name=pair.name,
        planted=pair.planted,
        named=frozenset(each.kind for each in found),
        texts=tuple(f"{each.kind}: {each.text}" for each in found),
        detail=pair.detail,
    )


def conditions_of(run: VirtualRun) -> RunConditions:
    """Measure a run without a recording."""
    samples: dict[float, EngineSample] = {tick.engine.scrape_start: tick.engine for tick in run.ticks if tick.engine}
    return measure_conditions(
        RunEvidence(
            header=run.header,
            stages=stage_periods(with_ends(run.stages, [])),
            history=TickHistory(run.ticks),
            requests=_requests(run),
            engine_samples=list(samples.values()),
            replica_samples=run.replica_samples,
            gpu_samples=[gpu for tick in run.ticks for gpu in tick.gpus],
            log_lines=run.log_lines,
        )
    )


def _requests(run: VirtualRun) -> StageRequests:
    """Return the lengths, statuses and replicas of the requests; their times are left out."""
    records = sorted(run.records, key=lambda each: (each.stage, each.due, each.id))

    def column(name: str) -> FloatArray:
        return np.array([getattr(each, name) for each in records], dtype=np.float64)

    columns: dict[str, Any] = dict.fromkeys(PER_REQUEST, np.full(len(records), np.nan))
    columns |= {name: column(name) for name in ("prompt_tokens", "output_tokens")}
    columns["status"] = np.array([STATUSES.index(each.status) for each in records], dtype=np.int8)
    nothing = np.empty(0)
    return StageRequests(
        columns=RequestColumns(**columns, itl=Distribution.of(nothing), tokens_by_second=nothing),
        stages=column("stage"),
        ids=np.array([each.id for each in records], dtype=np.int64),
        replicas=column("replica"),
    )


def _recorded_conditions(run: VirtualRun) -> RunConditions:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.servetop"
        write_recording(run, path)
        reader = RecordingReader.open(path)
        try:
            return RecordedColumns.load(reader).conditions
        finally:
            reader.close()


def report(scores: Iterable[PairScore]) -> list[str]:
    """Return a Markdown table: per contamination how often it was named, how often alone, and what else was named."""
    rows: dict[str, list[PairScore]] = {}
    for score in scores:
        rows.setdefault(score.planted or CLEAN, []).append(score)
    lines = ["| planted | pairs | named | other conditions named |", "|---|---:|---:|---|"]
    return lines + [_row(name, part) for name, part in rows.items()]


def _row(name: str, scores: Sequence[PairScore]) -> str:
    wrong = [score for score in scores if score.others]
    kinds = sorted({str(kind) for score in wrong for kind in score.others})
    others = f"{len(wrong)} ({', '.join(kinds)})" if wrong else "0"
    named = "–" if name == CLEAN else str(sum(score.found for score in scores))
    return f"| {name} | {len(scores)} | {named} | {others} |"


def holds(scores: Sequence[PairScore]) -> bool:
    """Whether each contamination was named in 95 % of its pairs, and nothing else in any."""
    planted: dict[ConfounderKind, list[bool]] = {}
    for score in scores:
        if score.planted is not None:
            planted.setdefault(score.planted, []).append(score.found)
    found = all(sum(part) >= SHARE_NAMED * len(part) for part in planted.values())
    return found and not any(score.others for score in scores)


def main(argv: Sequence[str]) -> int:
    """Judge and print; exit code 1 if the goals are not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.judgement.contaminations", description=__doc__)
    parser.add_argument("--seed", type=int, nargs="+", default=[11, 12, 13])
    parser.add_argument("--cases", type=int, default=100, help="pairs of each kind and seed")
    parser.add_argument("--kind", action="append", default=[], choices=[CLEAN, *CONTAMINATIONS])
    parser.add_argument("--report", type=Path, help="write the table into this page, between its marks")
    options = parser.parse_args(argv)
    kinds = [None if name == CLEAN else ConfounderKind(name) for name in options.kind or [CLEAN, *CONTAMINATIONS]]
    scores = []
    for seed in options.seed:
        for score in judge_contaminations(seed, options.cases, kinds=kinds):
            scores.append(score)
            if score.others or (score.planted and not score.found):
                say(f"{score.name}: {score.detail}; named: {'; '.join(score.texts) or 'nothing'}")
    several = "s" if len(options.seed) > 1 else ""
    lines = [f"Seed{several} {', '.join(map(str, options.seed))}:", "", *report(scores)]
    say("\n".join(["", *lines]))
    if options.report:
        write_between_marks(options.report, lines, mark=MARK)
    return 0 if holds(scores) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
