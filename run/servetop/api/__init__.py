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

import asyncio
import contextlib
import dataclasses
import queue
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from servetop.api.background_run import BackgroundRun
from servetop.core.clock import wall_clock
from servetop.core.config import RunConfig

if TYPE_CHECKING:
    from servetop.analysis.comparison.report_types import ComparisonReport
    from servetop.analysis.live_stats import LiveStats
    from servetop.analysis.summary.summary_types import RunSummary
    from servetop.api.recording import Recording
    from servetop.reports.check.check_report import CheckReport
    from servetop.run.run_process import FinishedRun
    from servetop.run.search.search_result import SearchResult
    from servetop.simulator.predict.prediction import Prediction

    Names = str | Path | Sequence[str | Path]
    """One recording or several; names as in `open_recording`."""
    Progress = Callable[[LiveStats], None]
    """Takes the state of a run: rates and latencies of the last ten seconds, totals, engine, trust."""
T = TypeVar("T")


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


def run(config: RunConfig, recording: Path | None = None, *, progress: Progress | None = None) -> RunResult:
    """Run a load in this process and record it, to a new file in the recordings folder if none is given.

    `progress` gets the state of the run about twice a second, on the caller's thread; it may be slow, the load is not
    delayed. What it raises, like Ctrl-C, cancels the run, whose recording is completed first. The event loop of the
    run has a thread of its own, so a notebook or a coroutine may call this, though it blocks theirs. RecordingError if
    the file cannot be created; a run that fails later returns its exit code.
    """
    path = recording or _new_path(config)
    return _blocking(config, path, progress, partial(_run_result, path))


async def run_async(config: RunConfig, recording: Path | None = None, *, progress: Progress | None = None) -> RunResult:
    """As `run`, for coroutines: `progress` is called on their event loop, and a cancelled task cancels the run."""
    path = recording or _new_path(config)
    return await _awaited(config, path, progress, partial(_run_result, path))


def search(config: RunConfig, recording: Path | None = None, *, progress: Progress | None = None) -> SearchResult:
    """Find the largest load within objectives: `config.search`; its stages are those of a warm-up, or none.

    config = dataclasses.replace(config, search=SearchConfig(slo=("p99_ttft<500ms",), low=0.1, high=1000, budget=600))
    (tier,) = api.search(config).tiers
    print(tier.kind, tier.load, tier.low, tier.high)

    Failed requests are evidence, whatever `max_failures` says. Otherwise as `run`.
    """
    config = _searching(config)
    return _blocking(config, recording or _new_path(config), progress, _search_result)


async def search_async(
    config: RunConfig, recording: Path | None = None, *, progress: Progress | None = None
) -> SearchResult:
    """As `search`, for coroutines: `progress` and cancelling work as in `run_async`."""
    config = _searching(config)
    return await _awaited(config, recording or _new_path(config), progress, _search_result)


def _blocking(config: RunConfig, recording: Path, progress: Progress | None, finish: Callable[[FinishedRun], T]) -> T:
    states: queue.SimpleQueue[LiveStats | None] = queue.SimpleQueue()
    started = BackgroundRun(config, recording, put=states.put, finish=finish)
    try:
        while not _reported([states.get(), *(states.get() for _ in range(states.qsize()))], progress):
            pass
    except BaseException:
        started.interrupt()
        started.join()
        raise
    return started.result()


async def _awaited(
    config: RunConfig, recording: Path, progress: Progress | None, finish: Callable[[FinishedRun], T]
) -> T:
    loop = asyncio.get_running_loop()
    states: asyncio.Queue[LiveStats | None] = asyncio.Queue()

    def put(state: LiveStats | None) -> None:
        loop.call_soon_threadsafe(states.put_nowait, state)

    started = BackgroundRun(config, recording, put=put, finish=finish)
    try:
        while not _reported([await states.get(), *(states.get_nowait() for _ in range(states.qsize()))], progress):
            pass
    except BaseException:
        started.interrupt()
        await asyncio.shield(asyncio.to_thread(started.join))
        raise
    return started.result()


def _reported(states: Sequence[LiveStats | None], progress: Progress | None) -> bool:
    """Report the newest state of the run, and return whether it has ended: then None follows the last state."""
    known = [each for each in states if each is not None]
    if known and progress is not None:
        progress(known[-1])
    return states[-1] is None


def _new_path(config: RunConfig) -> Path:
    from servetop.recordings.library.paths import new_recording_path

    return new_recording_path(config, wall_clock())


def _run_result(path: Path, finished: FinishedRun) -> RunResult:
    from servetop.run.run_process import final_summary

    end = finished.end
    return RunResult(recording=path, exit_code=end.exit_code, reason=end.reason, summary=final_summary(finished))


def _searching(config: RunConfig) -> RunConfig:
    from servetop.run.search.search_setup import with_first_load

    return with_first_load(config)


def _search_result(finished: FinishedRun) -> SearchResult:
    from servetop.run.run_process import final_summary
    from servetop.run.search.search_result import search_result

    with contextlib.closing(finished.recorder.reader()) as reader:
        return search_result(reader, final_summary(finished))


def open_recording(name: str | Path = "latest") -> Recording:
    """Open a recording: a path, a name in the recordings folder, `latest`, or `sample:h200`. Close it after use.

    >>> from servetop import api
    >>> with api.open_recording("sample:overload") as recording:
    ...     requests = recording.requests()
    >>> requests
    <requests: 803 rows, 31 columns>
    >>> int((requests["ttft_s"] > 5).sum())
    30

    RecordingError if it is missing, or not a recording.
    """
    from servetop.api.recording import Recording
    from servetop.recordings.library.catalog import resolve
    from servetop.recordings.read.reader import RecordingReader

    return Recording(RecordingReader.open(resolve(str(name))))


def summary(name: str | Path = "latest") -> RunSummary:
    """Return the summary of a recording; names as in `open_recording`.

    >>> from servetop import api
    >>> api.summary("sample:overload").requests.completed
    803
    """
    with open_recording(name) as recording:
        return recording.summary()


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

    >>> from servetop import api
    >>> report = api.check("sample:overload", threshold=["completed>=800"])
    >>> int(report.exit_code), report.reason
    (0, '')
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

    >>> from servetop import api
    >>> from servetop.core.config import EngineConfig, RunConfig, StageConfig
    >>> load = RunConfig(engine=EngineConfig(name="sim"), stages=(StageConfig(request_rate=2, num_prompts=20),))
    >>> (cell,) = api.predict(load, gpu="a100-80").cells
    >>> cell.request_rate, round(cell.require_result().output_throughput)
    (2, 354)
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
