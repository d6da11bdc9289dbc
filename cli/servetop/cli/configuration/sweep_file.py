"""Sweep files: cells over load and requests, in TOML; the published studies are presets of the same form.

Keys are the names of the options of a run (docs/how-to/sweep.md), `repeats` and `order`; those of LISTS, and all under
`[grid]`, take lists. The tables `[engine]` and `[workload]` of a recording's header are read too. `[sim]` describes the
simulated machine; the load of a prediction is that of the file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from servetop.cli.configuration.configure import engine_config
from servetop.cli.configuration.sweep_grid import LISTS, LOAD, SEED, TABLES, WORKLOAD, grid_of
from servetop.cli.configuration.workload_settings import workload_config
from servetop.cli.options.conversion import read_options
from servetop.cli.options.declaration import GivenValues
from servetop.cli.options.file_keys import ENGINE_ARGS, is_file_key, option_of_key, values_of_file
from servetop.cli.options.file_keys import TABLES as HEADER_TABLES
from servetop.cli.options.option_names import plain
from servetop.cli.options.parsers import parse_seconds_or_none, parse_workers
from servetop.cli.options.run_options import RunOptions
from servetop.core.config import EngineConfig, WorkloadConfig, from_data
from servetop.core.config_values.cell_engine import engine_settings
from servetop.core.config_values.failure_limit import DEFAULT_MAX_FAILURES, FailureLimit
from servetop.core.errors import UsageError
from servetop.core.units import parse_rate, parse_seconds
from servetop.run.sweep.grid import Order, combinations, parse_restart
from servetop.run.sweep.presets import sweep_data
from servetop.run.sweep.simulator_table import variants_of
from servetop.run.sweep.value_range import values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCell:
    """One cell of a sweep file, before its dataset is read."""

    load: Mapping[str, Any]
    """What it sets of its stage: values by field of StageConfig."""
    workload: WorkloadConfig
    names: tuple[str, ...] = ()
    """Fields of the workload that the cell sets."""
    seed: int | None = None
    """None for that of the sweep."""
    engine: Mapping[str, Any] = field(default_factory=dict)
    """Model and flags of the engine that it sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFile:
    """A parsed sweep file."""

    engine: EngineConfig = EngineConfig()
    workload: WorkloadConfig = WorkloadConfig()
    max_num_seqs: tuple[int, ...] = ()
    request_rate: tuple[float, ...] = ()
    max_concurrency: tuple[int, ...] = ()
    duration: float | None = None
    """Seconds per cell that sets no other."""
    num_prompts: int | None = None
    """Requests per cell that sets no other."""
    repeats: int = 1
    order: Order = Order.FEWEST_RESTARTS
    restart: str | None = None
    """When the engine restarts although no cell needs it: between `repeats`, or never."""
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
    cell_thresholds: tuple[str, ...] = ()
    """Conditions that each cell must meet."""
    until: tuple[str, ...] = ()
    """Conditions on a cell that end its row."""
    prices: tuple[str, ...] = ()
    metric_percentiles: str = ""
    max_failures: str = DEFAULT_MAX_FAILURES
    """Number or fraction of requests that may fail in the whole sweep."""
    label: str = ""
    metadata: tuple[str, ...] = ()
    sim: Mapping[str, Any] = field(default_factory=dict)
    """The simulated machine, as `servetop predict` reads it; a simulator in real time takes its `gpu` and
    `engine_profile`."""
    published: Mapping[str, Any] = field(default_factory=dict)
    """The table of a study that has figures of the same cells."""
    cells: tuple[FileCell, ...] = ()
    """The combinations of all lists, and single cells."""
    has_single_cells: bool = False


CELL_THRESHOLD = "cell_threshold"
_LISTS = ("goodput", "thresholds", "cell_thresholds", "prices", "metadata", "until")
_OWN = {
    name: name
    for name in (
        *LISTS,
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
_OWN |= {"threshold": "thresholds", "price": "prices", CELL_THRESHOLD: "cell_thresholds"}
"""By parameter of a run's options, the field of SweepFile; the others describe engine and workload."""
_FIELDS = {"dataset_name": "dataset"}
"""Options whose field of WorkloadConfig has another name."""
_EXTRA = ("repeats", "order", "restart", "until", CELL_THRESHOLD, "sim", "published", *TABLES)
_HEADINGS = ("sweep", "load", "run", "servetop")
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
    tables, fields = ({key: own[key] for key in own if (key in TABLES) is of_cells} for of_cells in (True, False))
    sweep = from_data(SweepFile, _in_base_units(fields, where=where), where=where)
    sweep = dataclasses.replace(sweep, engine=engine_config(options, engine_args), workload=workload_config(options))
    lists = {name: found for name in LISTS if (found := getattr(sweep, name))}
    grid = grid_of(tables, lists, where=where)
    fixed = {name: found[0] for name, found in lists.items() if name not in grid.lists}
    cells = [_file_cell(sweep, values, fixed | dict(cell), where=where) for cell in combinations(grid, where=where)]
    return dataclasses.replace(sweep, cells=tuple(cells), has_single_cells=bool(grid.cells))


def _file_cell(sweep: SweepFile, values: GivenValues, cell: Mapping[str, Any], *, where: str) -> FileCell:
    own = {key: value for key, value in cell.items() if key in (*LOAD, SEED)}
    typed = from_data(SweepFile, _in_base_units(own, where=where), where=where)
    load = {key: getattr(typed, key)[0] if key in LISTS else getattr(typed, key) for key in own if key != SEED}
    engine = engine_settings(cell)
    given = {key: value for key, value in cell.items() if key not in own and key not in engine}
    workload = sweep.workload
    if given:
        options = read_options(RunOptions, {**values, **values_of_file(given, where=where)}, where=where)
        workload = workload_config(options)
    names = tuple(_FIELDS.get(key, key) for key in given)
    seed = typed.seed if SEED in own else None
    return FileCell(load=load, workload=workload, names=names, seed=seed, engine=engine)


def is_sweep_key(option: str) -> bool:
    """Whether a sweep file may set this option of a run, in any of its spellings."""
    return is_file_key(option) and option_of_key(option, where="") not in _NO_SWEEP


def split_keys(data: Mapping[str, Any], *, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the keys of SweepFile's own fields from those that describe engine and workload."""
    own: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in data.items():
        if key in HEADER_TABLES and isinstance(value, Mapping):
            rest[key] = value
            continue
        if isinstance(value, Mapping) and plain(key) in _HEADINGS:
            raise UsageError(f"{where}: [{key}]: leave out this heading: the keys of a sweep belong to no table")
        name = key if key in _EXTRA else option_of_key(key, where=where, also=_EXTRA)
        if name in _NO_SWEEP:
            raise UsageError(f"{where}: {key} has no place in a sweep file: give {', '.join(LISTS)} and duration")
        if isinstance(value, list) and name in WORKLOAD:
            raise UsageError(f"{where}: {key} = {value}: write a list under [grid], or use one value")
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
        plain |= {key: list(values_of(plain[key], where=key)) for key in LISTS if key in plain}
        plain |= {key: parse(str(plain[key])) for key, parse in _PARSERS.items() if key in plain}
        if "request_rate" in plain:
            plain["request_rate"] = [parse_rate(str(rate)) for rate in plain["request_rate"]]
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return plain


_PARSERS: Mapping[str, Callable[[str], object]] = {
    "duration": parse_seconds,
    "cooldown": parse_seconds,
    "drain_timeout": parse_seconds_or_none,
    "max_failures": lambda text: FailureLimit.parse(text).text,
    "workers": parse_workers,
    "order": Order.parse,
    "restart": parse_restart,
}
