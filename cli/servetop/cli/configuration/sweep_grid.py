"""What a sweep file varies: its lists, the table `[grid]` and each `[[cell]]`, as cells with the options that they set.

Keys of `[grid]` and `[[cell]]` are names of options in any of their spellings (docs/how-to/sweep.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servetop.cli.options.file_keys import option_of_key
from servetop.core.config_values.cell_settings import FLAGS, MODEL
from servetop.core.errors import UsageError
from servetop.engines.adapters.engine_flags import SECRET_FLAGS
from servetop.run.sweep.grid import Grid
from servetop.run.sweep.value_range import values_of

LISTS = ("max_num_seqs", "request_rate", "max_concurrency")
"""Keys that take lists outside of `[grid]` too."""
LOAD = (*LISTS, "duration", "num_prompts")
"""Keys that set the stage of a cell."""
WORKLOAD = (
    "input_len",
    "output_len",
    "lengths",
    "range_ratio",
    "dataset_name",
    "dataset_path",
    "dataset_column",
    "num_turns",
    "prefix_len",
    "num_prefixes",
    "cache_hit_rate",
    "skip_bad_rows",
    "clip_lengths",
    "arrivals",
    "burstiness",
    "time_scale",
    "jitter",
    "think_time",
    "ignore_eos",
    "temperature",
    "extra_body",
    "n",
    "cancel_fraction",
    "timeout",
)
"""Options that describe the requests of a cell; the others are the same for all cells, like the connection."""
SEED = "seed"
GRID, CELL = TABLES = ("grid", "cell")
_ZIP, _EXCLUDE = "zip", "exclude"
_OWN_FLAGS = {"max-num-seqs": "max_num_seqs", "model": "model", "port": "port at the top of the file"}
"""Flags of an engine that servetop sets itself, and what to write for them."""
_LAST = ("request_rate", "max_concurrency")
"""Keys that vary fastest, so that cells of one engine and one workload follow each other."""


def grid_of(tables: Mapping[str, Any], lists: Mapping[str, Sequence[Any]], *, where: str) -> Grid:
    """Return what a file varies; `lists` are those outside of `[grid]`. UsageError names the faulty key."""
    varied, cells = _table(tables.get(GRID, {}), f"{where}: [grid]"), _cells(tables.get(CELL, []), where)
    inner: dict[str, Sequence[Any]] = {}
    for key, value in varied.items():
        if key in (_ZIP, _EXCLUDE):
            continue
        name = varied_option(key, where=f"{where}: [grid]")
        if name in inner or name in lists:
            raise UsageError(f"{where}: {key} has two lists: leave out one of them")
        inner[name] = _distinct(values_of(value, where=f"{where}: [grid] {key}"), f"{where}: [grid] {key}")
    outer = lists if not cells else {name: values for name, values in lists.items() if len(values) > 1}
    both = {**outer, **inner}
    grid = Grid(
        lists={name: both[name] for name in sorted(both, key=_place)},
        zipped=_zipped(varied.get(_ZIP, []), where=f"{where}: [grid]"),
        exclude=[_named(each, f"{where}: exclude") for each in _tables(varied.get(_EXCLUDE, []), f"{where}: exclude")],
        cells=cells,
    )
    _check_cells(grid, where=where)
    return grid


def varied_option(key: str, *, where: str) -> str:
    """Return the option that a key of `[grid]` or `[[cell]]` sets; UsageError for one that has one value in a sweep."""
    if key.startswith(FLAGS):
        return _flag(key, where=where)
    name = key if key in ("repeats", "order", "restart") else option_of_key(key, where=where)
    if name not in (*LOAD, *WORKLOAD, SEED, MODEL):
        raise UsageError(f"{where}: {key} has one value in a sweep: write it at the top of the file")
    return name


def _flag(key: str, *, where: str) -> str:
    """Return the name of a flag of the engine; UsageError for one that servetop sets, and for a secret."""
    name = key.removeprefix(FLAGS).lstrip("-").replace("_", "-")
    if name in _OWN_FLAGS:
        raise UsageError(f"{where}: {key}: write {_OWN_FLAGS[name]} instead")
    if f"--{name}" in SECRET_FLAGS:
        raise UsageError(f"{where}: {key}: a secret would be recorded: export it for the engine instead")
    return FLAGS + name


def _place(name: str) -> int:
    if name == MODEL or name.startswith(FLAGS):
        return -1  # cells of one engine follow each other
    return 0 if name == "max_num_seqs" else 2 + _LAST.index(name) if name in _LAST else 1


def _unfolded(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with `engine.args.NAME` in place of the tables of that name, in which TOML keeps such keys."""
    args = engine.get("args") if isinstance(engine := table.get("engine"), Mapping) else None
    if not isinstance(args, Mapping) or len(engine or ()) > 1:
        return dict(table)
    flags = {FLAGS + name: value for name, value in args.items()}
    unfolded: dict[str, Any] = {}
    for key, value in table.items():
        unfolded |= flags if key == "engine" else {key: value}
    return unfolded


def _cells(value: Any, where: str) -> list[Mapping[str, Any]]:
    tables = _tables(value, f"{where}: cell")
    return [_named(each, f"{where}: [[cell]] {number}") for number, each in enumerate(tables, start=1)]


def _check_cells(grid: Grid, *, where: str) -> None:
    for number, cell in enumerate(grid.cells, start=1):
        missing = next((name for name in grid.lists if name not in cell), None)
        if missing is not None:
            raise UsageError(
                f"{where}: [[cell]] {number} sets no {missing}, which has a list: add the value of this cell"
            )
        several = next((name for name, value in cell.items() if isinstance(value, list)), None)
        if several is not None:
            raise UsageError(f"{where}: [[cell]] {number}: {several} has several values: write them under [grid]")


def _named(table: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    if not table:
        raise UsageError(f"{where} is empty: give the values of a cell")
    return {varied_option(key, where=where): value for key, value in table.items()}


def _zipped(value: Any, *, where: str) -> list[list[str]]:
    groups = value if isinstance(value, list) and value and isinstance(value[0], list) else [value] if value else []
    if not all(isinstance(group, list) and all(isinstance(key, str) for key in group) for group in groups):
        raise UsageError(f'{where}: zip = {value!r}: write the names of keys, as in ["input_len", "output_len"]')
    return [[varied_option(key, where=f"{where}: zip") for key in group] for group in groups]


def _distinct(values: Sequence[Any], where: str) -> Sequence[Any]:
    twice = next((value for place, value in enumerate(values) if value in values[:place]), None)
    if twice is not None:
        raise UsageError(f"{where} has {twice!r} twice: leave it out once, or use repeats to measure it again")
    return values


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{where} = {value!r}: write a table")
    return _unfolded(value)


def _tables(value: Any, where: str) -> list[Mapping[str, Any]]:
    many = value if isinstance(value, list) else [value]
    return [_table(each, where) for each in many]
