"""How often intervals of costs contain the true cost, on simulated runs: `python -m tests.judgement.cost_intervals`.

The true throughput is the mean of the steady states of all runs of a load.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from servetop.analysis.summary.cost_summary import CostSummary
from servetop.core.config import StageConfig
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary import run_summary
from tests.judgement.brief_recordings import record_briefly
from tests.judgement.report_page import say, write_between_marks

LOADS = {
    "20 req/s, 60 s": StageConfig(request_rate=20.0, duration=60.0),
    "16 in flight, 60 s": StageConfig(max_concurrency=16, duration=60.0),
}
COSTS = {
    "request": "per_request",
    "million tokens": "per_million_tokens",
    "million output tokens": "per_million_output_tokens",
}
LENGTHS: dict[str, Any] = {"input_len": 128, "output_len": 64, "range_ratio": 0.5}


def measured_costs(load: StageConfig, *, first_seed: int, runs: int) -> Iterator[CostSummary]:
    """Yield the costs of the steady state of each run that has one."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first_seed, first_seed + runs):
            path = record_briefly(Path(folder) / f"{seed}.servetop", load, seed=seed, **LENGTHS)
            with contextlib.closing(RecordingReader.open(path)) as reader:
                steady = run_summary(reader, prices=("2.5/h",)).steady.measured
            if steady is not None and steady.cost is not None:
                yield steady.cost


def row(load: str, name: str, costs: Sequence[CostSummary]) -> str:
    """Return a row of the table: runs, the share of intervals that contain the true cost, and their mean half-width."""
    values = [getattr(cost, COSTS[name]) for cost in costs]
    intervals = [getattr(cost, f"{COSTS[name]}_interval") for cost in costs]
    truth = len(values) / sum(1 / value for value in values)
    covered = sum(low <= truth <= high for low, high in intervals) / len(costs)
    width = sum((high - low) / 2 / truth for low, high in intervals) / len(costs)
    return f"| {load} | {name} | {len(costs)} | {covered:.0%} | ± {width:.1%} |"


def main(argv: Sequence[str]) -> int:
    """Print the table, and with `--report` write it into a page."""
    parser = argparse.ArgumentParser(prog="python -m tests.judgement.cost_intervals", description=__doc__)
    parser.add_argument("--seed", type=int, default=11, help="the first seed")
    parser.add_argument("--runs", type=int, default=200, help="runs of each load")
    parser.add_argument("--report", type=Path, help="write the table into this page, between its marks")
    options = parser.parse_args(argv)
    lines = ["| load | cost per | steady runs | 95 % intervals with the true cost | width |", "|---|---|---|---|---|"]
    for load, stage in LOADS.items():
        costs = list(measured_costs(stage, first_seed=1000 * options.seed, runs=options.runs))
        lines += [row(load, name, costs) for name in COSTS]
    say("\n".join(lines))
    if options.report is not None:
        write_between_marks(options.report, lines, mark="<!-- make judge-price -->")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
