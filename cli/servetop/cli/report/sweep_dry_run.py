"""`servetop sweep --dry-run`: the cells of a sweep in their order, the restarts of its engine, and its length."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servetop.cli.tables import out_tables
from servetop.core.config import RunConfig, StageConfig
from servetop.core.config_values.cell_engine import engine_settings
from servetop.core.config_values.cell_settings import settings_text
from servetop.core.config_values.planned_seconds import planned_seconds
from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.engines.engine_registry import load_engine
from servetop.reports.tables import cell, light_table, titled
from servetop.run import console

PLANNED, PREDICTED, UNKNOWN = "planned", "predicted", "unknown"
CellName = tuple[str, int]
"""Label and repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTime:
    """One cell, and how long its load lasts."""

    stage: StageConfig
    restart: bool = False
    """Whether the engine restarts before it, or before its warm-up."""
    seconds: float | None
    """None if unknown."""
    basis: str
    """`predicted` by the simulator, `planned` (its duration, or its requests at its rate), or `unknown`."""


def cell_times(config: RunConfig, predicted: Mapping[CellName, float]) -> list[CellTime]:
    """Return the time of each cell, except warm-ups; `predicted` are seconds by cell."""
    found = []
    restarted = False
    for stage, restart in zip(config.stages, restarts(config), strict=True):
        restarted = restarted or restart
        if stage.warmup:
            continue
        seconds, basis = predicted.get((stage.label, stage.repeat)), PREDICTED
        if seconds is None:
            seconds = planned_seconds(stage)
            basis = UNKNOWN if seconds is None else PLANNED
        found.append(CellTime(stage=stage, restart=restarted, seconds=seconds, basis=basis))
        restarted = False
    return found


def restarts(config: RunConfig) -> list[bool]:
    """Return whether a sweep restarts its engine before each stage.

    It does for other flags, another model or another batch size, and with `restart` for the next repeat.
    """
    if config.engine.url is not None:
        return [False for _ in config.stages]
    live = load_engine(config.engine.name).changes_batch_size_live

    def needs(stage: StageConfig) -> object:
        batch, repeat = None if live else stage.max_num_seqs, stage.repeat if config.restart else None
        return settings_text(engine_settings(stage.settings)), batch, repeat

    pairs = itertools.pairwise(config.stages)
    return [False, *(needs(before) != needs(after) for before, after in pairs)][: len(config.stages)]


def print_dry_run(config: RunConfig, predicted: Mapping[CellName, float], *, as_json: bool) -> None:
    """Print the cells, the restarts and the time, as text or JSON."""
    times, count = cell_times(config, predicted), sum(restarts(config))
    if as_json:
        conditions = {"until": config.until, "cell_threshold": config.cell_thresholds}
        given = {key: texts for key, texts in conditions.items() if texts}
        console.out_json(dry_run_json(times, restarts=count) | given)
        return
    table = light_table("", "seconds", "", "")
    for each in times:
        repeat = f" #{each.stage.repeat + 1}" if each.stage.repeat else ""
        restart = "after a restart" if each.restart else ""
        table.add_row(cell(each.stage.label + repeat), formats.number(each.seconds), cell(each.basis), restart)
    out_tables(titled(f"{counted(len(times), 'cell')}, in this order", table))
    console.out("", f"restarts   {count}", f"time       {_time_text(times)}")
    if config.cell_thresholds:
        console.out(f"thresholds {', '.join(config.cell_thresholds)}: each cell must meet them")
    if config.until:
        console.out(
            f"until      {', '.join(config.until)}: a load that meets one ends its row, whose higher loads are skipped"
        )


def dry_run_json(times: Sequence[CellTime], *, restarts: int) -> dict[str, Any]:
    """Return what the sweep will do as one object."""
    return {
        "cells": [_cell_json(each) for each in times],
        "restarts": restarts,
        "seconds": sum(each.seconds or 0.0 for each in times),
        "cells_of_unknown_length": sum(each.seconds is None for each in times),
    }


def _cell_json(each: CellTime) -> dict[str, Any]:
    stage = each.stage
    return {
        "label": stage.label,
        "repeat": stage.repeat,
        "request_rate": "inf" if math.isinf(stage.request_rate) else stage.request_rate,
        "max_concurrency": stage.max_concurrency,
        "max_num_seqs": stage.max_num_seqs,
        "settings": stage.settings,
        "duration": stage.duration,
        "num_prompts": stage.num_prompts,
        "restart": each.restart,
        "seconds": each.seconds,
        "basis": each.basis,
    }


def _time_text(times: Sequence[CellTime]) -> str:
    by_basis = {basis: [each.seconds or 0.0 for each in times if each.basis == basis] for basis in (PLANNED, PREDICTED)}
    parts = [f"{len(each)} {basis} ({formats.clock(sum(each))})" for basis, each in by_basis.items() if each]
    unknown = sum(each.seconds is None for each in times)
    parts += [f"{unknown} of unknown length ([sim] in the file predicts it)"] if unknown else []
    total = formats.clock(sum(sum(each) for each in by_basis.values()))
    least = "at least " if unknown else ""
    return f"{least}{total} of load: {', '.join(parts)}; starts of the engine add to it"
