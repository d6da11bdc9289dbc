"""The Python entry to servetop, without a terminal: run, search, predict, and read, compare and check recordings.

    from servetop import api
    from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig

    config = RunConfig(
        engine=EngineConfig(name="auto", model="", url="http://gpu7:8000"),
        workload=WorkloadConfig(input_len=512, output_len=128),
        stages=(StageConfig(request_rate=8, duration=60),),
    )
    result = api.run(config)
    print(result.exit_code, result.summary.requests.output_throughput)

Every function raises a `servetop.core.errors.ServetopError` with a one-line message when something is wrong.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.core.clock import wall_clock
from servetop.core.config import RunConfig

if TYPE_CHECKING:
    from servetop.analysis.comparison.report_types import ComparisonReport
    from servetop.analysis.summary.summary_types import RunSummary
    from servetop.recordings.read.reader import RecordingReader
    from servetop.reports.check.check_report import CheckReport
    from servetop.run.search.search_result import SearchResult
    from servetop.simulator.predict.prediction import Prediction

    Names = str | Path | Sequence[str | Path]
    """One recording or several; names as in `open_recording`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A run that has ended."""

    recording: Path
    exit_code: int
    """0 for success; see docs/reference/exit-codes.md."""
    reason: str
    """Why the run ended as it did; empty for success."""
    summary: RunSummary
    """The summary; `servetop.analysis.summary.summary_json` gives what `servetop summary --json` prints."""


def run(config: RunConfig, recording: Path | None = None) -> RunResult:
    """Run a load in this process and record it, to a new file in the recordings folder if none is given.

    Runs an event loop of its own, so it must not be called from a coroutine. Signals keep the handlers of the caller.
    RecordingError if the file cannot be created; a run that fails later returns its exit code.
    """
    from servetop.recordings.library.paths import new_recording_path
    from servetop.run.process.run_signals import RunSignals
    from servetop.run.run_process import RunContext, execute, final_summary

    path = recording or new_recording_path(config, wall_clock())
    finished = execute(config, path, context=RunContext(signals=RunSignals(), observer=_Silent()))
    end = finished.end
    return RunResult(recording=path, exit_code=end.exit_code, reason=end.reason, summary=final_summary(finished))


def search(config: RunConfig, recording: Path | None = None) -> SearchResult:
    """Find the largest load within objectives: `config.search`; its stages are those of a warm-up, or none.

    config = dataclasses.replace(config, search=SearchConfig(slo=("p99_ttft<500ms",), low=0.1, high=1000, budget=600))
    (tier,) = api.search(config).tiers
    print(tier.kind, tier.load, tier.low, tier.high)

    Failed requests are evidence, whatever `max_failures` says. Otherwise as `run`.
    """
    from servetop.run.search.search_result import search_result
    from servetop.run.search.search_setup import with_first_load

    finished = run(with_first_load(config), recording)
    with contextlib.closing(open_recording(finished.recording)) as reader:
        return search_result(reader, finished.summary)


class _Silent:
    """Prints nothing about a run."""

    async def follow(self) -> None:
        """Return at once."""

    def alert(self, line: str) -> None:
        """Ignore a line, which is in the recording too."""


def open_recording(name: str | Path = "latest") -> RecordingReader:
    """A reader of a recording: a path, a name in the recordings folder, `latest`, or `sample:h200`. Close it after use.

    with contextlib.closing(api.open_recording("latest")) as reader:
        failed = [each for each in reader.requests(0.0, math.inf) if each.error]
    """
    from servetop.recordings.library.catalog import resolve
    from servetop.recordings.read.reader import RecordingReader

    return RecordingReader.open(resolve(str(name)))


def summary(name: str | Path = "latest") -> RunSummary:
    """Return the summary of a recording; names as in `open_recording`."""
    from servetop.reports.summary.summary import run_summary

    with contextlib.closing(open_recording(name)) as reader:
        return run_summary(reader)


def compare(
    a: Names,
    b: Names,
    *,
    metrics: Sequence[str] = (),
    margins: Mapping[str, float] | None = None,
    start_spread: float | None = None,
    prices: Sequence[str] = (),
    anyway: bool = False,
) -> ComparisonReport:
    """Compare two configurations, each measured by one recording or several; a folder stands for those in it.

    `metrics` are keys of the summary (all if empty), `margins` the smallest differences to look for, as fractions by
    key, `start_spread` the standard deviation assumed between starts, as a fraction, `prices` as in `2.5/h`: one, or
    one for each; `anyway` compares unlike workloads. What `servetop compare --json` prints has the same fields.

    (result,) = api.compare("main.servetop", "new.servetop").comparisons
    print(result.verdict, result.headline)
    """
    from servetop.reports.comparison.compare_recordings import compare_recordings

    return compare_recordings(
        [_joined(a), _joined(b)],
        metrics=metrics,
        margins=margins,
        start_spread=start_spread,
        prices=prices,
        anyway=anyway,
    )


def check(
    recordings: Names,
    *,
    baseline: Names = (),
    max_regression: Sequence[str] = (),
    threshold: Sequence[str] = (),
    rule: Sequence[str] = (),
    ignore: Sequence[str] = (),
    start_spread: float | None = None,
    anyway: bool = False,
) -> CheckReport:
    """Check recordings against a baseline, thresholds and the rules of their figures, as `servetop check` does.

    `max_regression` as in `p99_ttft_ms=10%`, `threshold` as in `p99_ttft_ms<=500`; `rule` and `ignore` choose rules.

    report = api.check("new.servetop", threshold=["p99_ttft_ms<=500"])
    print(int(report.exit_code), report.reason)
    """
    from servetop.reports.check.check_runs import check_recordings, wanted_of

    wanted = wanted_of(
        max_regression=max_regression,
        threshold=threshold,
        rule=rule,
        ignore=ignore,
        start_spread=start_spread,
        anyway=anyway,
    )
    return check_recordings(_listed(recordings), _listed(baseline), wanted)


def _listed(names: Names) -> list[str]:
    return [str(names)] if isinstance(names, str | Path) else [str(each) for each in names]


def _joined(names: Names) -> str:
    return ",".join(_listed(names))


def predict(config: RunConfig, *, gpu: str = "", engine_profile: str = "") -> Prediction:
    """Return the results of each stage of a configuration, simulated in virtual time on a GPU and engine profile.

    for cell in api.predict(config, gpu="a100-80").cells:
        print(cell.request_rate, cell.require_result().output_throughput, cell.require_result().ttft_ms.p99)
    """
    from servetop.simulator.predict.predict import PredictSpec
    from servetop.simulator.predict.predict import predict as predict_cells

    usual = PredictSpec()
    spec = dataclasses.replace(
        usual,
        model=config.engine.model or usual.model,
        gpu=gpu or usual.gpu,
        engine_profile=engine_profile or usual.engine_profile,
        workload=config.workload,
        stages=tuple(stage for stage in config.stages if not stage.warmup) or usual.stages,
        seed=config.seed,
        sweep=config.drain_at_stages,
        goodput=config.goodput,
    )
    return predict_cells(spec)
