"""The table `[published]` of a sweep file: what a study measured in the same cells."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servetop.core.config import EngineConfig, StageConfig, from_data
from servetop.core.config_values.cell_settings import settings_text
from servetop.core.config_values.published_study import PublishedCell, PublishedStudy
from servetop.core.errors import UsageError
from servetop.run.sweep.presets import sweep_data
from servetop.simulator.validate.published import rows, tables

_BATCH, _RATE, _ENGINE = ("max_num_seqs", "max_batch_size"), "qps", "engine"
_FIGURES = {"output_throughput": "output_tokens_per_s", "preemptions": "preemptions"}
"""Columns of the tables by field of PublishedCell."""
_Row = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PublishedTable:
    source: str
    """Where it is published, such as `Run:ai whitepaper, Table 4`."""
    set_up: str
    """The engine, the model and the machine."""
    table: str
    """Name of a table in simulator/data/whitepaper."""


def published_study(name: str, engine: EngineConfig, stages: Sequence[StageConfig]) -> PublishedStudy | None:
    """Return what the table of a sweep file has of these cells; None without a table or without a common cell.

    Of a table of several engines it is the part of `engine`, else that of the file's own.
    UsageError for a table that does not exist, or with a wrong key.
    """
    data = sweep_data(name)
    if "published" not in data:
        return None
    table = _table(data["published"], where=f"{name}: [published]")
    found, of_engine = _rows_of_engine(rows(table.table), (engine.name, _own_engine(data)))
    cells: dict[tuple[object, ...], PublishedCell] = {}
    for stage in stages:
        place = (stage.request_rate, stage.max_num_seqs, stage.max_concurrency, settings_text(stage.settings))
        cell = None if stage.warmup or place in cells else _cell(found, stage)
        if cell is not None:
            cells[place] = cell
    set_up = ", ".join(filter(None, (of_engine, table.set_up)))
    return PublishedStudy(source=table.source, set_up=set_up, cells=tuple(cells.values())) if cells else None


def _table(data: Any, *, where: str) -> _PublishedTable:
    names = [each.name for each in dataclasses.fields(_PublishedTable)]
    if not isinstance(data, Mapping) or (missing := next((each for each in names if each not in data), None)):
        wanted = "a table" if not isinstance(data, Mapping) else missing
        raise UsageError(f"{where}: {wanted} is missing: give {', '.join(names)}")
    table = from_data(_PublishedTable, data, where=where)
    if table.table not in tables():
        near = difflib.get_close_matches(table.table, tables(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"tables are {', '.join(tables())}"
        raise UsageError(f"{where}: no table {table.table!r}: {hint}")
    return table


def _own_engine(data: Mapping[str, Any]) -> str | None:
    """Return the engine that a sweep file names."""
    engine = data.get("engine")
    return engine.get("name") if isinstance(engine, Mapping) else engine


def _rows_of_engine(table: Sequence[_Row], names: Sequence[str | None]) -> tuple[list[_Row], str]:
    """Return the rows of the first of these engines that has any, and its name; all of a table of one engine."""
    engines = {row.get(_ENGINE) for row in table}
    if len(engines) == 1:
        return list(table), ""
    name = next((each for each in names if each in engines), None)
    return [row for row in table if row[_ENGINE] == name], name or ""


def _cell(table: Sequence[_Row], stage: StageConfig) -> PublishedCell | None:
    """Return the figures of a cell.

    At a URL its concurrency takes the place of the batch size. A study that names no rate has one for all cells.
    """
    batch = stage.max_concurrency if stage.max_num_seqs is None else stage.max_num_seqs
    for row in table:
        size = next((row[each] for each in _BATCH if each in row), None)
        if (size is not None and float(size) != batch) or (_RATE in row and float(row[_RATE]) != stage.request_rate):
            continue
        figures = {
            field: value for field, column in _FIGURES.items() if (value := _number(row.get(column))) is not None
        }
        if not figures:
            return None
        return PublishedCell(
            max_num_seqs=stage.max_num_seqs,
            request_rate=stage.request_rate,
            max_concurrency=stage.max_concurrency,
            settings=stage.settings,
            suspect=row.get("suspect", "0") != "0",
            output_throughput=figures.get("output_throughput"),
            preemptions=figures.get("preemptions"),
        )
    return None


def _number(text: str | None) -> float | None:
    """Return a figure; None for one that was not published, such as `OOM`."""
    try:
        return float(text or "")
    except ValueError:
        return None
