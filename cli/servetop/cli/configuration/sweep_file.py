"""Sweep files: a grid over batch size and request rate, in TOML; the published studies are presets of the same form.

Keys are the names of the options of a run (docs/how-to/sweep.md), and `repeats`; those of GRID take lists. The tables
`[engine]` and `[workload]` of a recording's header are read too. `[sim]` describes the simulated machine; the load of a
prediction is that of the file.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from servetop.cli.configuration.configure import endpoint_of_config, engine_config, extra_percentiles
from servetop.cli.configuration.stage_options import check, check_cooldown, with_an_end, with_warmup
from servetop.cli.configuration.workload_settings import prefix_cache_of, resolved, workload_config
from servetop.cli.options.conversion import read_options
from servetop.cli.options.declaration import GivenValues
from servetop.cli.options.file_keys import ENGINE_ARGS, TABLES, is_file_key, option_of_key, values_of_file
from servetop.cli.options.option_names import plain
from servetop.cli.options.parsers import (
    parse_goodput,
    parse_metadata,
    parse_percentiles,
    parse_prices,
    parse_seconds_or_none,
    parse_workers,
)
from servetop.cli.options.run_options import RunOptions
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig, from_data
from servetop.core.config_values.failure_limit import DEFAULT_MAX_FAILURES, FailureLimit
from servetop.core.errors import UsageError
from servetop.core.units import parse_rate, parse_seconds
from servetop.engines.control.connection import check_connection
from servetop.run.sweep.presets import sweep_data
from servetop.run.sweep.simulator_table import simulator_flags, variants_of
from servetop.workload.request_headers import all_headers


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFile:
    """A parsed sweep file; every combination of its grid is one cell."""

    engine: EngineConfig = EngineConfig()
    workload: WorkloadConfig = WorkloadConfig()
    max_num_seqs: tuple[int, ...] = ()
    request_rate: tuple[float, ...] = ()
    max_concurrency: tuple[int, ...] = ()
    duration: float | None = None
    """Seconds per cell."""
    num_prompts: int | None = None
    """Requests per cell."""
    repeats: int = 1
    num_warmups: int = 0
    """Requests before the first cell that count in no total."""
    cooldown: float = 0.0
    """Seconds at the end of each cell that count in no total."""
    drain_timeout: float = 120.0
    """Seconds for which requests in flight are waited for at the end of each cell."""
    prefix_cache: str | None = None
    """State of the prefix cache when a cell begins."""
    workers: int = 1
    """Sender processes; 0, written `auto`, as many as needed."""
    seed: int = 0
    goodput: tuple[str, ...] = ()
    thresholds: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    metric_percentiles: str = ""
    max_failures: str = DEFAULT_MAX_FAILURES
    """Number or fraction of requests that may fail in the whole sweep."""
    label: str = ""
    metadata: tuple[str, ...] = ()
    sim: Mapping[str, Any] = field(default_factory=dict)
    """The simulated machine, as `servetop predict` reads it; a simulator in real time takes its `gpu` and
    `engine_profile`."""


GRID = ("max_num_seqs", "request_rate", "max_concurrency")
"""Keys whose every combination is a cell."""
_LISTS = (*GRID, "goodput", "thresholds", "prices", "metadata")
_OWN = {
    name: name
    for name in (
        *GRID,
        "duration",
        "num_prompts",
        "num_warmups",
        "cooldown",
        "drain_timeout",
        "prefix_cache",
        "workers",
        "seed",
    )
}
_OWN |= {name: name for name in ("goodput", "metric_percentiles", "max_failures", "label", "metadata")}
_OWN |= {"threshold": "thresholds", "price": "prices"}
"""By parameter of a run's options, the field of SweepFile; the others describe engine and workload."""
_EXTRA = ("repeats", "sim")
_HEADINGS = ("sweep", "grid", "load", "run", "servetop")
"""Headings that a file has none of, although one may look for them."""
_NO_SWEEP = (
    "ramp",
    "ramp_up_strategy",
    "ramp_up_start_rps",
    "ramp_up_end_rps",
    "record",
    "no_record",
    "headless",
    "detach",
    "as_json",
    "theme",
    "reduced_motion",
    "against",
    "web",
    "web_host",
    "web_port",
    "web_steer",
)
_STARTED = ("engine", "model", "engine_command", ENGINE_ARGS, "launcher", "image", "port")
"""Keys that a URL on the command line replaces."""


def read_sweep(name: str, given: GivenValues | None = None, engine_args: Sequence[str] = ()) -> SweepFile:
    """Read a sweep from a file or a preset; values of the command line replace the file's.

    UsageError names the faulty key.
    """
    data = sweep_data(name)
    variants_of(data.get("sim", {}), where=name)
    own, rest = split_keys(data, where=name)
    values = values_of_file(rest, where=name)
    typed = {key: value for key, value in (given or {}).items() if value}
    if "url" in typed:
        values = {key: value for key, value in values.items() if key not in _STARTED}
    file_args = values.pop(ENGINE_ARGS, ())
    assert not isinstance(file_args, str | bool)
    return sweep_of(own, values | typed, engine_args=engine_args or file_args, where=name)


def sweep_of(own: Mapping[str, Any], values: GivenValues, *, engine_args: Sequence[str] = (), where: str) -> SweepFile:
    """Return a sweep from fields of SweepFile and option values for engine and workload."""
    options = read_options(RunOptions, values, where=where)
    sweep = from_data(SweepFile, _in_base_units(own, where=where), where=where)
    return dataclasses.replace(sweep, engine=engine_config(options, engine_args), workload=workload_config(options))


def is_sweep_key(option: str) -> bool:
    """Whether a sweep file may set this option of a run, in any of its spellings."""
    return is_file_key(option) and option_of_key(option, where="") not in _NO_SWEEP


def split_keys(data: Mapping[str, Any], *, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the keys of SweepFile's own fields from those that describe engine and workload."""
    own: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in data.items():
        if key in TABLES and isinstance(value, Mapping):
            rest[key] = value
            continue
        if isinstance(value, Mapping) and plain(key) in _HEADINGS:
            raise UsageError(f"{where}: [{key}]: leave out this heading: the keys of a sweep belong to no table")
        name = key if key in _EXTRA else option_of_key(key, where=where, also=_EXTRA)
        if name in _NO_SWEEP:
            raise UsageError(f"{where}: {key} has no place in a sweep file: give {', '.join(GRID)} and duration")
        if name in (*_EXTRA, *_OWN):
            own[_OWN.get(name, name)] = value
        else:
            rest[key] = value
    return own, rest


def _in_base_units(data: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Convert single values of lists to lists, and durations and rates to numbers."""
    plain = dict(data)
    for key in _LISTS:
        if key in plain and not isinstance(plain[key], list):
            plain[key] = [plain[key]]
    if isinstance(plain.get("metric_percentiles"), int | float | list):
        plain["metric_percentiles"] = str(plain["metric_percentiles"]).strip("[]")
    try:
        for key in ("duration", "cooldown", "drain_timeout"):
            if key in plain:
                parse = parse_seconds_or_none if key == "drain_timeout" else parse_seconds
                plain[key] = parse(str(plain[key]))
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
    """Return the run that measures all cells, ordered so that each batch size is set once."""
    _check(sweep)
    check_connection(sweep.engine.connection, attached=sweep.engine.url is not None)
    percentiles = extra_percentiles(parse_percentiles(sweep.metric_percentiles), sweep.thresholds, prices=sweep.prices)
    try:
        prices = parse_prices(sweep.prices)
        workload, stages = planned_load(sweep)
        check_cooldown(sweep.cooldown, stages)
        prefix_cache = prefix_cache_of(sweep.prefix_cache, workload)
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
        prices=prices,
        metric_percentiles=percentiles,
        max_failures=sweep.max_failures,
        drain_at_stages=True,
        cooldown=sweep.cooldown,
        drain_timeout=sweep.drain_timeout,
        prefix_cache=prefix_cache,
        label=sweep.label,
        metadata=parse_metadata(sweep.metadata),
    )


def planned_load(sweep: SweepFile) -> tuple[WorkloadConfig, tuple[StageConfig, ...]]:
    """Return the workload, and a stage for each cell, behind the warm-up if there is one."""
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
    endpoint = endpoint_of_config(sweep.engine, sweep.workload.endpoint)
    return dataclasses.replace(sweep.workload, endpoint=endpoint)


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
