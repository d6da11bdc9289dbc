"""From what was typed to a RunConfig; everything that cannot work is refused here, before anything starts."""

from __future__ import annotations

import dataclasses
import math
import os
import shlex
from collections.abc import Sequence
from typing import Any

from servetop.cli.configuration.stage_options import (
    check,
    checked_cooldown,
    parse_workers,
    says_load,
    stages_of,
    with_warmup,
)
from servetop.cli.configuration.workload_settings import Options, resolved, workload_config
from servetop.cli.options.config_file import ConfigFile, check_complete
from servetop.cli.options.connection_options import connection_config
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.errors import UsageError
from servetop.core.failure_limit import FailureLimit
from servetop.core.units import MS_PER_S
from servetop.workload.request_headers import all_headers

OPENAI = ("completions", "chat", "responses")
SPEAK_OPENAI = ("openai", "sim", "vllm")
"""Known without importing them, which most runs would wait for."""
ALWAYS = (50.0, 90.0, 95.0, 99.0)
"""Percentiles that each summary has."""
SLO_METRICS = ("ttft", "ttfot", "tpot", "e2el")


def run_config(options: Options, engine_args: Sequence[str], file: ConfigFile | None = None) -> RunConfig:
    """The configuration that options describe; UsageError says which one is wrong.

    `file` is where options were taken from: its engine's own options and its stages hold where `options` have none.
    """
    workload, replay = resolved(workload_config(options))
    repeated = file.stages if file is not None and not says_load(options) else ()
    stages = with_warmup(repeated or stages_of(options, replay), options["num_warmups"])
    workers = parse_workers(options["workers"])
    check(workload, stages)
    all_headers(workload, os.environ)  # a variable that is not set: refused before anything is recorded
    engine = engine_config(options, engine_args or (file.engine_args if file is not None else ()))
    workload = dataclasses.replace(workload, endpoint=endpoint_at(engine.name, workload.endpoint))
    config = RunConfig(
        drain_at_stages=bool(repeated) and file is not None and file.drain_at_stages,
        engine=engine,
        workload=workload,
        stages=stages,
        seed=options["seed"],
        workers=workers,
        goodput=parse_goodput(options["goodput"] or ()),
        cooldown=checked_cooldown(options["cooldown"], stages),
        thresholds=tuple(options["threshold"] or ()),
        metric_percentiles=wanted_percentiles(options["metric_percentiles"], options["threshold"] or ()),
        max_failures=FailureLimit.parse(options["max_failures"]).text,
        label=options["label"],
        metadata=parse_metadata(options["metadata"] or ()),
    )
    if file is not None:
        check_complete(config)
    return config


def endpoint_at(engine: str, endpoint: str) -> str:
    """As asked for, else the engine's usual one; empty as long as the engine is not known. UsageError for none."""
    if engine == "auto":
        if endpoint not in ("", *OPENAI, "generate"):
            raise UsageError(f"--endpoint {endpoint}: give {', '.join(OPENAI)} or generate")
        return endpoint
    if engine in SPEAK_OPENAI and endpoint in ("", *OPENAI):
        return endpoint or OPENAI[0]
    from servetop.engines.dialects.registry import endpoint_of
    from servetop.engines.registry import load_engine

    found = load_engine(engine)
    return endpoint_of(endpoint, found.endpoints, title=found.title)


def wanted_percentiles(text: str | None, thresholds: Sequence[str]) -> tuple[float, ...]:
    """Percentiles of --metric-percentiles and those that a threshold is on, without the ones that are always there.

    UsageError for a threshold that cannot be judged, before the run rather than after it.
    """
    wanted = parse_percentiles(text or "")
    if thresholds:
        from servetop.recordings.summary.thresholds import percentiles_needed  # numpy: not for every start

        wanted += tuple(percentiles_needed(thresholds))
    return tuple(sorted(set(wanted) - set(ALWAYS)))


def parse_percentiles(text: str) -> tuple[float, ...]:
    """Numbers from 0 to 100 of a list such as `50,99.9`, in order; UsageError for anything else."""
    try:
        found = [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        found = [math.nan]
    if not all(0 <= each <= 100 for each in found):
        raise UsageError(f"--metric-percentiles {text}: give numbers from 0 to 100, as in 50,90,99.9")
    return tuple(sorted(set(found)))


def engine_config(options: Options, engine_args: Sequence[str]) -> EngineConfig:
    """The engine's part; with a URL nothing is started, so engine options make no sense."""
    url = options["url"]
    if options["front_door"] and not url:
        raise UsageError("--front-door needs the --url of each server behind it, whose metrics are read")
    if url and (engine_args or options["engine_command"]):
        raise UsageError("--url attaches to a running server: leave out --engine-command and what stands after --")
    config = EngineConfig(
        name=options["engine"] or ("auto" if url else "sim"),
        model=options["model"] or ("" if url else "llama-2-7b"),
        **urls(url),
        front_door=options["front_door"],
        metrics_url=options["metrics_url"],
        port=options["port"],
        max_num_seqs=options["max_num_seqs"],
        extra_args=tuple(engine_args),
        command=tuple(shlex.split(options["engine_command"] or "")),
        start_timeout=options["start_timeout"],
        attach_timeout=options["attach_timeout"],
        api_key_env=options["api_key_env"],
        connection=connection_config(options),
        launcher=options["launcher"] or "",
        image=options["image"] or "",
    )
    if config.metrics_url:
        from servetop.engines.metrics.prometheus_server import MetricsAddress

        MetricsAddress.parse(config.metrics_url)
    check_launcher(config)
    if config.api_key_env:
        from servetop.engines.start import api_key

        api_key(config, os.environ)  # missing: told before anything is recorded
    return config


def urls(given: Sequence[str] | None) -> dict[str, Any]:
    """The first --url, and its replicas if there are any; of an EngineConfig."""
    if not given:
        return {"url": None}
    return {"url": given[0], "more_urls": tuple(given[1:])}


def check_launcher(config: EngineConfig) -> None:
    """UsageError for a launcher that is none or has nothing to start, and for an image without one."""
    if config.launcher not in ("", "docker", "podman"):
        raise UsageError(
            f"--launcher {config.launcher}: give docker or podman, or none to start the engine as a program"
        )
    if config.image and not config.launcher:
        raise UsageError("--image is that of a container: give --launcher docker or --launcher podman too")
    if config.launcher and config.url:
        raise UsageError("--url attaches to a running server: leave out --launcher and --image")
    if config.launcher and config.name == "sim":
        raise UsageError("the simulator needs no container: name an --engine, or leave out --launcher")


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
