"""Sweep files: a grid over batch size and request rate, in TOML; the published studies are presets of the same form.

Keys are the names of the options of a run (docs/sweep.md), and `repeats`; the three of GRID take lists. The tables
`[engine]` and `[workload]` of a recording's header are understood too, and `[sim]` is what the simulator needs besides.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from servetop.cli.configuration.configure import (
    endpoint_at,
    engine_config,
    parse_goodput,
    parse_metadata,
    wanted_percentiles,
)
from servetop.cli.configuration.stage_options import check, checked_cooldown, parse_workers, with_an_end, with_warmup
from servetop.cli.configuration.workload_settings import resolved, workload_config
from servetop.cli.options.option_values import ENGINE_ARGS, TABLES, RunOptions
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig, from_data
from servetop.core.errors import UsageError
from servetop.core.failure_limit import DEFAULT_MAX_FAILURES, FailureLimit
from servetop.core.units import parse_rate, parse_seconds
from servetop.engines.control.connection import check_connection
from servetop.run.sweep.presets import simulator_flags, sweep_data
from servetop.workload.request_headers import all_headers


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFile:
    """The grid as written; every combination is one cell."""

    engine: EngineConfig = EngineConfig()
    workload: WorkloadConfig = WorkloadConfig()
    max_num_seqs: tuple[int, ...] = ()
    request_rate: tuple[float, ...] = ()
    max_concurrency: tuple[int, ...] = ()
    duration: float | None = None
    """Seconds a cell."""
    num_prompts: int | None = None
    """Requests a cell."""
    repeats: int = 1
    num_warmups: int = 0
    """Requests before the first cell that count in no total."""
    cooldown: float = 0.0
    """Seconds at the end of each cell that count in no total."""
    workers: int = 1
    """Sender processes; 0, written `auto`, as many as needed."""
    seed: int = 0
    goodput: tuple[str, ...] = ()
    thresholds: tuple[str, ...] = ()
    metric_percentiles: str = ""
    max_failures: str = DEFAULT_MAX_FAILURES
    """Requests, or a share of them, that may fail in the whole sweep."""
    label: str = ""
    metadata: tuple[str, ...] = ()
    sim: Mapping[str, Any] = field(default_factory=dict)
    """What `servetop predict` needs besides; a real run takes its `arrivals`, a simulator in real time its `gpu` and
    `engine_profile`."""


GRID = ("max_num_seqs", "request_rate", "max_concurrency")
"""Keys whose every combination is a cell."""
_LISTS = (*GRID, "goodput", "thresholds", "metadata")
_OWN = {name: name for name in (*GRID, "duration", "num_prompts", "num_warmups", "cooldown", "workers", "seed")}
_OWN |= {name: name for name in ("goodput", "metric_percentiles", "max_failures", "label", "metadata")}
_OWN["threshold"] = "thresholds"
"""By parameter of a run's options, the field of SweepFile; the others describe engine and workload."""
_EXTRA = ("repeats", "sim")
_NO_SWEEP = (
    "ramp", "ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps", "record", "no_record", "headless", "detach",
    "as_json", "theme", "reduced_motion", "web", "web_host", "web_port",
)  # fmt: skip
_STARTED = ("engine", "model", "engine_command", ENGINE_ARGS, "launcher", "image", "port")
"""What a URL on the command line takes the place of."""


def read_sweep(name: str, given: Mapping[str, Any] | None = None, engine_args: Sequence[str] = ()) -> SweepFile:
    """A sweep from a file or a preset's name, with what the command line gives instead of the file's values.

    UsageError says what is wrong in it, and where.
    """
    options = RunOptions()
    own, rest = _split(options, sweep_data(name), where=name)
    values = options.values(rest, where=name)
    typed = {key: value for key, value in (given or {}).items() if value}
    if "url" in typed:
        values = {key: value for key, value in values.items() if key not in _STARTED}
    words = engine_args or values.pop(ENGINE_ARGS, ())
    parsed = options.parsed(values | typed, where=name)
    sweep = from_data(SweepFile, _in_base_units(own, where=name), where=name)
    return dataclasses.replace(sweep, engine=engine_config(parsed, words), workload=workload_config(parsed))


def _split(options: RunOptions, data: Mapping[str, Any], *, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The grid and the cells' part of a file by field of SweepFile, and what describes engine and workload."""
    own: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in data.items():
        if key in TABLES and isinstance(value, Mapping):
            rest[key] = value
            continue
        name = key if key in _EXTRA else options.name(key, where=where, also=_EXTRA)
        if name in _NO_SWEEP:
            raise UsageError(f"{where}: {key} has no place in a sweep file: give {', '.join(GRID)} and duration")
        if name in (*_EXTRA, *_OWN):
            own[_OWN.get(name, name)] = value
        else:
            rest[key] = value
    return own, rest


def simulator_data(name: str) -> dict[str, Any]:
    """A sweep file in the form that the simulator reads, whatever its keys are spelled like."""
    options = RunOptions()
    data = sweep_data(name)
    own, rest = _split(options, data, where=name)
    values = options.values(rest, where=name)
    lengths = {key: int(values[key]) for key in ("input_len", "output_len") if key in values}
    engine = {"model": values["model"]} if "model" in values else {}
    return own | {"engine": engine, "workload": lengths}


def _in_base_units(data: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Single values become lists where a grid wants lists; durations and rates become numbers."""
    plain = dict(data)
    for key in _LISTS:
        if key in plain and not isinstance(plain[key], list):
            plain[key] = [plain[key]]
    if isinstance(plain.get("metric_percentiles"), int | float | list):
        plain["metric_percentiles"] = str(plain["metric_percentiles"]).strip("[]")
    try:
        for key in ("duration", "cooldown"):
            if key in plain:
                plain[key] = parse_seconds(str(plain[key]))
        if "max_failures" in plain:
            plain["max_failures"] = FailureLimit.parse(str(plain["max_failures"])).text
        if "workers" in plain:
            plain["workers"] = parse_workers(str(plain["workers"]))
        if "request_rate" in plain:
            plain["request_rate"] = [parse_rate(str(rate)) for rate in plain["request_rate"]]
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return plain


def sweep_config(sweep: SweepFile) -> RunConfig:
    """The run that measures every cell, cell by cell, so that each batch size is set once."""
    _check(sweep)
    check_connection(sweep.engine.connection, attached=sweep.engine.url is not None)
    percentiles = wanted_percentiles(sweep.metric_percentiles, sweep.thresholds)
    try:
        workload, stages = _load(sweep)
        cooldown = checked_cooldown(f"{sweep.cooldown:g}" if sweep.cooldown else None, stages)
    except UsageError as error:
        raise UsageError(f"{sweep.label}: {error}") from None
    return RunConfig(
        engine=_engine(sweep),
        workload=workload,
        stages=stages,
        seed=sweep.seed,
        workers=sweep.workers,
        goodput=parse_goodput(sweep.goodput),
        thresholds=sweep.thresholds,
        metric_percentiles=percentiles,
        max_failures=sweep.max_failures,
        drain_at_stages=True,
        cooldown=cooldown,
        label=sweep.label,
        metadata=parse_metadata(sweep.metadata),
    )


def _load(sweep: SweepFile) -> tuple[WorkloadConfig, tuple[StageConfig, ...]]:
    workload, replay = resolved(_workload(sweep))
    all_headers(workload, os.environ)
    rates = sweep.request_rate or (float("inf") if replay is None else replay.rate,)
    grid = itertools.product(
        sweep.max_num_seqs or (None,), rates, sweep.max_concurrency or (None,), range(sweep.repeats)
    )
    cells = [with_an_end(_cell(sweep, *values), replay) for values in grid]
    stages = with_warmup(cells, sweep.num_warmups)
    check(workload, stages)
    return workload, stages


def _engine(sweep: SweepFile) -> EngineConfig:
    if sweep.engine.name != "sim" or sweep.engine.url is not None:
        return sweep.engine
    return dataclasses.replace(sweep.engine, extra_args=(*simulator_flags(sweep.sim), *sweep.engine.extra_args))


def _workload(sweep: SweepFile) -> WorkloadConfig:
    """The workload, with the arrivals of the study where it says nothing of its own."""
    arrivals = sweep.workload.arrivals or str(sweep.sim.get("arrivals", ""))
    endpoint = endpoint_at(sweep.engine.name, sweep.workload.endpoint)
    return dataclasses.replace(sweep.workload, arrivals=arrivals, endpoint=endpoint)


def _check(sweep: SweepFile) -> None:
    if not (sweep.max_num_seqs or sweep.request_rate or sweep.max_concurrency):
        raise UsageError(f"{sweep.label}: nothing to sweep: give max_num_seqs, request_rate or max_concurrency lists")
    if (
        any(value < 1 for value in (*sweep.max_num_seqs, *sweep.max_concurrency, sweep.repeats))
        or sweep.num_warmups < 0
    ):
        raise UsageError(f"{sweep.label}: max_num_seqs, max_concurrency and repeats start at 1")
    if sweep.num_prompts is not None and sweep.num_prompts < 1:
        raise UsageError(f"{sweep.label}: num_prompts = {sweep.num_prompts}: give 1 or more requests a cell")


def _cell(sweep: SweepFile, batch: int | None, rate: float, concurrency: int | None, repeat: int) -> StageConfig:
    attached = sweep.engine.url is not None
    return StageConfig(
        request_rate=rate,
        max_concurrency=batch if attached and concurrency is None else concurrency,
        duration=sweep.duration,
        num_prompts=sweep.num_prompts,
        max_num_seqs=None if attached else batch,
        repeat=repeat,
    )
