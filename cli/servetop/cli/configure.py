"""From what was typed to a RunConfig; everything that cannot work is refused here, before anything starts."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Sequence

from servetop.cli.connection_options import connection_config
from servetop.cli.load import check, checked_cooldown, parse_workers, stages_of, with_warmup
from servetop.cli.workload import Options, resolved, workload_config
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.errors import UsageError
from servetop.core.units import MS_PER_S

SLO_METRICS = ("ttft", "ttfot", "tpot", "e2el")


def run_config(options: Options, engine_args: Sequence[str]) -> RunConfig:
    """The configuration that options describe; UsageError says which one is wrong."""
    workload, replay = resolved(workload_config(options))
    stages = with_warmup(stages_of(options, replay), options["num_warmups"])
    workers = parse_workers(options["workers"])
    check(workload, stages)
    if options["threshold"]:
        check_form(options["threshold"])
    return RunConfig(
        engine=engine_config(options, engine_args),
        workload=workload,
        stages=stages,
        seed=options["seed"],
        workers=workers,
        goodput=parse_goodput(options["goodput"] or ()),
        cooldown=checked_cooldown(options["cooldown"], stages),
        thresholds=tuple(options["threshold"] or ()),
        label=options["label"],
        metadata=parse_metadata(options["metadata"] or ()),
    )


def check_form(thresholds: Sequence[str]) -> None:
    """UsageError for a threshold that cannot be judged, before the run rather than after it."""
    from servetop.recordings.thresholds import parse_threshold  # numpy: not for every start

    for text in thresholds:
        parse_threshold(text)


def engine_config(options: Options, engine_args: Sequence[str]) -> EngineConfig:
    """The engine's part; with a URL nothing is started, so engine options make no sense."""
    url = options["url"]
    if url and (engine_args or options["engine_command"]):
        raise UsageError("--url attaches to a running server: leave out --engine-command and what stands after --")
    config = EngineConfig(
        name=options["engine"] or ("auto" if url else "sim"),
        model=options["model"] or ("" if url else "llama-2-7b"),
        url=url,
        port=options["port"],
        max_num_seqs=options["max_num_seqs"],
        extra_args=tuple(engine_args),
        command=tuple(shlex.split(options["engine_command"] or "")),
        start_timeout=options["start_timeout"],
        api_key_env=options["api_key_env"],
        connection=connection_config(options),
    )
    if config.api_key_env:
        from servetop.engines.starting import api_key

        api_key(config, os.environ)  # missing: told before anything is recorded
    return config


def parse_goodput(texts: Sequence[str]) -> dict[str, float]:
    """Objectives in seconds from `ttft:500` (milliseconds, as the field writes them); several in one text too."""
    objectives: dict[str, float] = {}
    for text in " ".join(texts).replace(",", " ").split():
        metric, _, limit = text.partition(":")
        try:
            objectives[metric] = float(limit) / MS_PER_S
        except ValueError:
            objectives[metric] = math.nan
        if metric not in SLO_METRICS or not objectives[metric] > 0:
            raise UsageError(f"--goodput {text}: give METRIC:MILLISECONDS with a metric of {', '.join(SLO_METRICS)}")
    return objectives


def parse_metadata(texts: Sequence[str]) -> dict[str, str]:
    """A dictionary from KEY=VALUE texts."""
    bad = next((text for text in texts if "=" not in text or text.startswith("=")), None)
    if bad is not None:
        raise UsageError(f"--metadata {bad}: give KEY=VALUE")
    return dict(text.split("=", 1) for text in texts)
