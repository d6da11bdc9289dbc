"""Judges asked hit rates and planted caches on simulated runs: `python -m tests.judgement.cache_honesty`."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from servetop.analysis.summary.summary_types import RunSummary
from servetop.cli.configuration.stage_options import with_warmup
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary import run_summary
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import VirtualRunPlan
from servetop.workload.prompts.hit_rate_prompts import check_hit_rate
from tests.judgement.recordings import write_recording
from tests.judgement.report_page import say

MARK = "<!-- make judge-cache -->"
"""Encloses the figures in the page."""
RATES = (0.1, 0.37, 0.6, 0.9)
LENGTHS = (
    WorkloadConfig(input_len=200),
    WorkloadConfig(input_len=1000),
    WorkloadConfig(input_len=500, range_ratio=0.5),
    WorkloadConfig(lengths="lognormal:input_mean=600,input_cap=3000"),
)
BLOCKS = (16, 32, 64)
REQUESTS, WARMUPS = 400, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One run with an asked hit rate, and what the simulated engine counted."""

    rate: float
    counted: float

    @property
    def error(self) -> float:
        """Percentage points."""
        return 100 * (self.counted - self.rate)


def asked_runs(seeds: Sequence[int], folder: Path, *, rates: Sequence[float] = RATES) -> Iterator[Asked]:
    """Run each possible combination of rate, lengths and block size with each seed, after a warm-up."""
    for seed, rate, lengths, block in itertools.product(seeds, rates, LENGTHS, BLOCKS):
        workload = dataclasses.replace(lengths, output_len=4, cache_hit_rate=rate, num_prefixes=2)
        with contextlib.suppress(UsageError):  # short prompts have too few whole blocks for a high rate
            check_hit_rate(workload, block_size=block)
            summary = summarised(simulated(workload, seed=seed, block=block, warmups=WARMUPS), folder)
            yield Asked(rate=rate, counted=summary.measured.server.prefix_cache_hit_rate or 0.0)


def simulated(workload: WorkloadConfig, *, seed: int, block: int = 16, warmups: int = 0) -> VirtualRun:
    """A closed loop at a simulated vLLM, which begins with an empty cache."""
    stage = StageConfig(max_concurrency=16, num_prompts=REQUESTS)
    stages = with_warmup((stage,), warmups)
    config = RunConfig(engine=EngineConfig(), workload=workload, stages=stages, seed=seed)
    keys = {"block_size": block, "max_model_len": 4096}
    return run_virtually(VirtualRunPlan(config=config, gpu="h100", engine_profile="vllm-current", settings=keys))


def contaminated(seed: int) -> tuple[VirtualRun, float]:
    """A run whose engine holds the beginning of each prompt, as after an earlier run with the same seed, and how much.

    The engine finds what a shared prefix is; the header says that the prompts share nothing.
    """
    random = Random(seed)
    length, held = random.randint(100, 2000), random.uniform(0.1, 0.95)
    prefix = max(32, int(held * length))
    truth = WorkloadConfig(input_len=max(1, length - prefix), prefix_len=prefix, output_len=4)
    run = simulated(truth, seed=seed)
    claimed = WorkloadConfig(input_len=length, output_len=4)
    config = dataclasses.replace(run.header.config, workload=claimed)
    return dataclasses.replace(run, header=dataclasses.replace(run.header, config=config)), held


def clean(seed: int) -> VirtualRun:
    """A run whose workload explains all hits: random prompts, shared prefixes, or an asked rate from a cold start."""
    random = Random(seed)
    kinds = (
        WorkloadConfig(input_len=random.randint(100, 2000), output_len=4),
        WorkloadConfig(
            input_len=random.randint(20, 900),
            prefix_len=random.randint(20, 900),
            num_prefixes=random.randint(1, 20),
            output_len=4,
        ),
        WorkloadConfig(input_len=random.randint(300, 2000), cache_hit_rate=random.uniform(0.1, 0.9), output_len=4),
    )
    return simulated(random.choice(kinds), seed=seed)


def summarised(run: VirtualRun, folder: Path) -> RunSummary:
    """The summary of a run, from a recording in this folder."""
    path = folder / "run.servetop"
    path.unlink(missing_ok=True)
    write_recording(run, path)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return run_summary(reader)


def is_named(summary: RunSummary) -> bool:
    """Whether the trust of the run and of its stage name the cache."""
    parts = (summary.measured, *(stage.measured for stage in summary.stages))
    return all(any("cache hit rate" in reason for reason in part.trust.reasons) for part in parts)


def figures(seeds: Sequence[int], *, planted: int) -> list[str]:
    """The figures as lines of Markdown."""
    with tempfile.TemporaryDirectory() as name:
        runs = list(asked_runs(seeds, Path(name)))
    lines = ["| asked | runs | mean error, points | largest error |", "|---|---|---|---|"]
    for rate in RATES:
        errors = [run.error for run in runs if run.rate == rate]
        worst = max(errors, key=abs)
        lines.append(f"| {rate:.0%} | {len(errors)} | {sum(errors) / len(errors):+.2f} | {worst:+.2f} |")
    with tempfile.TemporaryDirectory() as name:
        found = sum(is_named(summarised(contaminated(seed)[0], Path(name))) for seed in range(planted))
        false = sum(is_named(summarised(clean(seed), Path(name))) for seed in range(planted))
    text = f"Planted caches that hold 10 to 95 % of each prompt: {found} of {planted} named."
    return [*lines, "", f"{text} Clean runs: {false} of {planted}."]


def main(argv: Sequence[str]) -> int:
    """Print the figures, and with `--report` write them into a page."""
    parser = argparse.ArgumentParser(prog="python -m tests.judgement.cache_honesty", description=__doc__)
    parser.add_argument("--seed", type=int, nargs="+", default=[11, 12, 13])
    parser.add_argument("--planted", type=int, default=100, help="runs with a planted cache, and clean ones")
    parser.add_argument("--report", type=Path, help="write the figures into this page, between its marks")
    options = parser.parse_args(argv)
    lines = figures(options.seed, planted=options.planted)
    say("\n".join(lines))
    if options.report:
        before, _, after = options.report.read_text(encoding="utf-8").split(MARK, 2)
        options.report.write_text("\n".join([f"{before}{MARK}", "", *lines, "", f"{MARK}{after}"]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
