"""From a sweep file to the run that measures it: the workload, a stage for each cell, and everything around them."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from servetop.cli.configuration.configure import endpoint_of_config, extra_percentiles
from servetop.cli.configuration.stage_options import check, check_cooldown, with_an_end, with_warmup
from servetop.cli.configuration.sweep_file import FileCell, SweepFile
from servetop.cli.configuration.workload_settings import prefix_cache_of, resolved
from servetop.cli.options.parsers import parse_goodput, parse_metadata, parse_percentiles, parse_prices
from servetop.core.config import (
    STANDARD_PERCENTILES,
    WARM,
    EngineConfig,
    RunConfig,
    StageConfig,
    WorkloadConfig,
    to_data,
)
from servetop.core.config_values.cell_engine import engine_settings
from servetop.core.config_values.cell_settings import MODEL, settings_text
from servetop.core.config_values.cell_workload import cell_workload, cell_workloads
from servetop.core.errors import UsageError
from servetop.core.same_fields import from_same_fields
from servetop.engines.control.connection import check_connection
from servetop.run.sweep.grid import in_order
from servetop.run.sweep.simulator_table import simulator_flags
from servetop.workload.request_headers import all_headers

if TYPE_CHECKING:
    from servetop.workload.validation import Replay


@dataclass(frozen=True, slots=True, kw_only=True)
class _ResolvedCell:
    """A cell with what its dataset decides."""

    cell: FileCell
    workload: WorkloadConfig
    replay: Replay | None


def sweep_config(sweep: SweepFile) -> RunConfig:
    """Return the run that measures all cells, ordered so that each batch size is set once."""
    _check(sweep)
    check_connection(sweep.engine.connection, attached=sweep.engine.url is not None)
    percentiles = extra_percentiles(parse_percentiles(sweep.metric_percentiles), sweep.thresholds, prices=sweep.prices)
    try:
        prices = parse_prices(sweep.prices)
        workload, stages = planned_load(sweep)
        check_cooldown(sweep.cooldown, stages)
        prefix_cache = _prefix_cache(sweep, cell_workloads(workload, stages))
    except UsageError as error:
        raise UsageError(f"{sweep.label}: {error}") from None
    config = from_same_fields(
        RunConfig,
        sweep,
        engine=_engine(sweep),
        workload=workload,
        stages=stages,
        goodput=parse_goodput(sweep.goodput),
        prices=prices,
        metric_percentiles=percentiles,
        drain_at_stages=True,
        prefix_cache=prefix_cache,
        metadata=parse_metadata(sweep.metadata),
        published=None,  # the figures of its cells, which are no part of what is measured
    )
    return _with_conditions(config) if sweep.until or sweep.cell_thresholds else config


def _with_conditions(config: RunConfig) -> RunConfig:
    """Return a run with the percentiles that the conditions on its cells need; UsageError for one without a figure."""
    from servetop.analysis.checks.cell_thresholds import parse_cell_thresholds
    from servetop.analysis.checks.thresholds import percentiles_needed
    from servetop.reports.check.row_conditions import parse_row_conditions  # not for other sweeps

    try:
        conditions, thresholds = parse_row_conditions(config), parse_cell_thresholds(config)
    except UsageError as error:
        raise UsageError(f"{config.label}: {error}") from None
    needed = percentiles_needed([*thresholds, *(each.threshold for each in conditions if each.threshold is not None)])
    percentiles = {*config.metric_percentiles, *needed} - set(STANDARD_PERCENTILES)
    return dataclasses.replace(config, metric_percentiles=tuple(sorted(percentiles)))


def planned_load(sweep: SweepFile) -> tuple[WorkloadConfig, tuple[StageConfig, ...]]:
    """Return the workload of the first cell, and a stage for each cell, behind the warm-up if there is one.

    The settings of a stage are what its cell sets, and what differs from the first cell.
    """
    cells = _resolved(sweep)
    first = cells[0].workload
    all_headers(first, os.environ)
    planned = [_stage(sweep, each, first=first) for each in cells]
    ordered = in_order(
        planned,
        sweep.repeats,
        order=sweep.order,
        seed=sweep.seed,
        engine=lambda stage: (
            settings_text(engine_settings(stage.settings)),
            stage.max_num_seqs if sweep.has_single_cells else None,
        ),
        in_rounds=sweep.restart is not None,
    )
    repeated = [dataclasses.replace(stage, repeat=repeat) for stage, repeat in ordered]
    stages = with_warmup(repeated, sweep.num_warmups, each_repeat=sweep.restart is not None)
    _check_stages(first, stages)
    return first, stages


def _resolved(sweep: SweepFile) -> list[_ResolvedCell]:
    """Resolve each different workload once."""
    known: dict[str | None, tuple[WorkloadConfig, Replay | None]] = {}
    found = []
    for cell in sweep.cells:
        key = settings_text({name: to_data(getattr(cell.workload, name)) for name in cell.names})
        if key not in known:
            endpoint = endpoint_of_config(sweep.engine, cell.workload.endpoint)
            known[key] = resolved(dataclasses.replace(cell.workload, endpoint=endpoint))
        found.append(_ResolvedCell(cell=cell, workload=known[key][0], replay=known[key][1]))
    return found


def _stage(sweep: SweepFile, planned: _ResolvedCell, *, first: WorkloadConfig) -> StageConfig:
    load, replay = planned.cell.load, planned.replay
    attached = sweep.engine.url is not None
    batch, concurrency = load.get("max_num_seqs"), load.get("max_concurrency")
    stage = StageConfig(
        request_rate=load.get("request_rate", math.inf if replay is None else replay.rate),
        max_concurrency=batch if attached and concurrency is None else concurrency,
        duration=load.get("duration", sweep.duration),
        num_prompts=load.get("num_prompts", sweep.num_prompts),
        max_num_seqs=None if attached else batch,
        settings=_settings(planned, first),
    )
    return with_an_end(stage, replay)


def _settings(planned: _ResolvedCell, first: WorkloadConfig) -> Mapping[str, Any]:
    names = [each.name for each in dataclasses.fields(first)]
    differing = [name for name in names if getattr(planned.workload, name) != getattr(first, name)]
    own = {name: to_data(getattr(planned.workload, name)) for name in (*planned.cell.names, *differing)}
    own |= planned.cell.engine
    return own if planned.cell.seed is None else own | {"seed": planned.cell.seed}


def _check_stages(workload: WorkloadConfig, stages: Sequence[StageConfig]) -> None:
    """UsageError for a cell that cannot be sent, or that cannot be in one sweep with the others."""
    by_settings: dict[str | None, list[StageConfig]] = {}
    for stage in stages:
        by_settings.setdefault(settings_text(stage.settings), []).append(stage)
    for alike in by_settings.values():
        check(cell_workload(workload, alike[0].settings), alike)
    different = cell_workloads(workload, stages)
    if len({each.conversational for each in different}) > 1:
        raise UsageError("cells with conversations and cells without them: use one sweep for each")
    if any(each.exact_lengths for each in different) and len({each.dataset for each in different}) > 1:
        raise UsageError("exact_lengths counts the tokens of one dataset: use one sweep for each dataset_name")
    if any(each.exact_lengths for each in different) and any(MODEL in stage.settings for stage in stages):
        raise UsageError("exact_lengths counts the tokens of one model: use one sweep for each model")


def _prefix_cache(sweep: SweepFile, workloads: Sequence[WorkloadConfig]) -> str:
    """Return the state of the prefix cache that each cell begins with."""
    warm = any(each.cache_hit_rate is not None for each in workloads)
    given = sweep.prefix_cache or (WARM if warm else None)
    states = {prefix_cache_of(given, each) for each in workloads}
    return states.pop()


def _engine(sweep: SweepFile) -> EngineConfig:
    if sweep.engine.name != "sim" or sweep.engine.url is not None:
        return sweep.engine
    return dataclasses.replace(sweep.engine, extra_args=(*simulator_flags(sweep.sim), *sweep.engine.extra_args))


def _check(sweep: SweepFile) -> None:
    if sweep.engine.url is not None and (given := next((each for cell in sweep.cells for each in cell.engine), None)):
        raise UsageError(
            f"{sweep.label}: a server at a URL keeps its model and its flags: leave out {given}, or the URL"
        )
    if sweep.restart is not None and sweep.engine.url is not None:
        raise UsageError(f"{sweep.label}: servetop does not restart a server at a URL: leave out restart, or the URL")
    if sweep.restart is not None and sweep.repeats == 1:
        raise UsageError(f"{sweep.label}: restart = {sweep.restart!r} needs repeats = 2 or more")
    if not any(cell.load or cell.names or cell.engine or cell.seed is not None for cell in sweep.cells):
        raise UsageError(f"{sweep.label}: nothing to sweep: give max_num_seqs, request_rate or max_concurrency lists")
    sizes = [cell.load.get(name, 1) for cell in sweep.cells for name in ("max_num_seqs", "max_concurrency")]
    if any(value < 1 for value in (*sizes, sweep.repeats)) or sweep.num_warmups < 0:
        raise UsageError(f"{sweep.label}: max_num_seqs, max_concurrency and repeats start at 1")
    counts = [cell.load.get("num_prompts", sweep.num_prompts) for cell in sweep.cells]
    if (wrong := next((count for count in counts if count is not None and count < 1), None)) is not None:
        raise UsageError(f"{sweep.label}: num_prompts = {wrong}: give 1 or more requests a cell")
