"""From what was typed to a RunConfig; everything that cannot work is refused here, before anything starts."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Sequence
from typing import Any

from servetop.cli.load import Options, checked, stages_of, with_warmup
from servetop.core.config import EngineConfig, RunConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.units import MS_PER_S

SLO_METRICS = ("ttft", "tpot", "e2el")


def run_config(options: Options, engine_args: Sequence[str]) -> RunConfig:
    """The configuration that options describe; UsageError says which one is wrong."""
    workload, stages = workload_config(options), with_warmup(stages_of(options), options["num_warmups"])
    if options["threshold"]:
        check_form(options["threshold"])
    checked(workload, stages)
    return RunConfig(
        engine=engine_config(options, engine_args),
        workload=workload,
        stages=stages,
        seed=options["seed"],
        goodput=parse_goodput(options["goodput"] or ()),
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
    )
    if config.api_key_env:
        from servetop.engines.starting import api_key

        api_key(config, os.environ)  # missing: told before anything is recorded
    return config


def workload_config(options: Options) -> WorkloadConfig:
    """What each request asks for."""
    if options["endpoint"] not in ("completions", "chat"):
        raise UsageError(f"--endpoint {options['endpoint']}: give completions or chat")
    if not options["burstiness"] > 0:
        raise UsageError(f"--burstiness {options['burstiness']:g}: give a number above 0 (1 is Poisson)")
    return WorkloadConfig(
        input_len=options["input_len"],
        output_len=options["output_len"],
        arrivals=options["arrivals"] or "",
        burstiness=options["burstiness"],
        think_time=options["think_time"] or "",
        ignore_eos=options["ignore_eos"],
        endpoint=options["endpoint"],
        temperature=options["temperature"],
        extra_body=parse_extra_body(options["extra_body"]),
        timeout=options["timeout"],
        store_texts=options["store_texts"],
    )


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


def parse_extra_body(text: str | None) -> dict[str, Any]:
    """The JSON object of --extra-body."""
    try:
        body = json.loads(text) if text else {}
    except json.JSONDecodeError as error:
        raise UsageError(f"--extra-body is no JSON ({error}): give an object such as '{{\"top_p\": 0.9}}'") from None
    if not isinstance(body, dict):
        raise UsageError("--extra-body: give a JSON object such as '{\"top_p\": 0.9}'")
    return body
