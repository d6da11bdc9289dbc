"""`servetop run-pairs`: measures a series of pairs, shows its progress on stderr, and prints the answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from servetop.analysis.comparison.compared_metrics import METRICS, ComparedMetric, metric_named
from servetop.analysis.comparison.comparison import ComparisonOptions
from servetop.cli.framework.command_line import CommandLine
from servetop.cli.options.option_names import nearest
from servetop.cli.options.pairs_options import RunPairsOptions, SeriesOptions
from servetop.cli.pairs.pairs_progress import PairsProgress
from servetop.cli.pairs.pairs_report import print_series
from servetop.cli.pairs.variants import arm_configs
from servetop.core.clock import MonotonicClock, wall_clock
from servetop.core.errors import UsageError
from servetop.recordings.library.paths import recordings_folder
from servetop.reports.comparison.compare_recordings import check_margins
from servetop.run import console
from servetop.run.pairs.pair_run import PairRuns
from servetop.run.pairs.pair_series import PairSeries, SeriesPlan
from servetop.run.pairs.series_folder import ArmConfigs, SeriesFolder

_USUAL = ("output_throughput", "p50_ttft_ms", "mean_tpot_ms")


def measure_pairs(line: CommandLine[RunPairsOptions]) -> int:
    """Measure until the difference is known or the budget is spent; returns the exit code."""
    clock, options = MonotonicClock(), line.options.series
    metrics, margins = _metrics(options.metric or _USUAL), _margins(options.margin or {})
    check_margins(margins, metrics)
    plan = SeriesPlan(
        configs=arm_configs(line),
        options=ComparisonOptions(metrics=metrics, margins=margins),
        seed=line.options.load.seed,
        budget=options.budget,
        pairs=options.pairs,
    )
    folder = _folder(options)
    _warn(plan.configs)
    runs = PairRuns()
    series = PairSeries(
        plan,
        folder,
        play=runs.play,
        observer=PairsProgress(plan),
        clock=clock,
        interrupted=runs.interrupted,
    )
    with runs.signals_caught():
        result = series.measure(resume=options.resume)
    print_series(result, plan, folder=folder.path, as_json=options.as_json)
    return int(result.exit_code)


def _metrics(keys: Sequence[str]) -> tuple[ComparedMetric, ...]:
    """Return the metrics with these keys, each once."""
    return tuple({metric.key: metric for metric in map(_metric, keys)}.values())


def _metric(key: str) -> ComparedMetric:
    found = metric_named(key)
    if found is None:
        near = nearest(key, [each.key for each in METRICS])
        hint = f"did you mean {near}?" if near else f"use one of {', '.join(each.key for each in METRICS)}"
        raise UsageError(f"no metric {key!r}: {hint}")
    return found


def _margins(given: Mapping[str, float]) -> dict[str, float]:
    return {_metric(key).key: margin for key, margin in given.items()}


def _folder(options: SeriesOptions) -> SeriesFolder:
    """Return the folder of the series, new or to resume."""
    if options.into is None:
        if options.resume:
            raise UsageError("--resume needs the folder of the series: add --into FOLDER")
        stamp = datetime.fromtimestamp(wall_clock()).strftime("%Y%m%d-%H%M%S")
        return SeriesFolder(_unused(recordings_folder() / f"pairs-{stamp}"))
    folder = SeriesFolder(options.into)
    if not options.resume:
        folder.check_new()
    elif not folder.recordings():
        raise UsageError(f"{options.into} contains no series: run it without --resume first")
    return folder


def _unused(path: Path) -> Path:
    """Return the path, with a number if it exists."""
    number, free = 2, path
    while os.path.exists(free):  # False without access to the folder
        free, number = path.with_name(f"{path.name}-{number}"), number + 1
    return free


def _warn(configs: ArmConfigs) -> None:
    if configs.a == configs.b:
        console.message("A and B are the same configuration: any difference found is an error of the measurement")
    if not configs.restarts:
        console.message("servers at a URL are not restarted: the answer is about these two servers as they run now")
