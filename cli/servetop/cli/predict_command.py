"""`servetop predict` and `servetop validate`: the simulator in virtual time, and its accuracy."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from pathlib import Path

from servetop.cli.configuration.prediction import predict_specs, seed_of
from servetop.cli.configuration.stage_options import check
from servetop.cli.configuration.workload_settings import resolved
from servetop.cli.options.declaration import declared
from servetop.cli.options.predict_options import GridOptions, PredictOptions
from servetop.cli.options.request_options import PromptOptions
from servetop.cli.tables import out_tables
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.config_values.cell_settings import settings_label
from servetop.core.errors import ExitCode, UsageError
from servetop.core.same_fields import from_same_fields
from servetop.core.text import formats
from servetop.reports.tables import cell, light_table, titled
from servetop.run import console
from servetop.run.record_prediction import check_recordable, record_prediction
from servetop.simulator.predict.predict import DEFAULT_STAGE, PredictSpec, predict
from servetop.simulator.predict.prediction import CellPrediction, Prediction, prediction_json
from servetop.simulator.validate.validate import validate
from servetop.simulator.validate.validation_tables import markdown, report

ALL_AT_ONCE = "all-at-once"


def run_predict(options: PredictOptions) -> int:
    """Predict the grid of a sweep file or preset, or that of the options."""
    if options.file is not None and options.preset is not None:
        raise UsageError(f"{options.file} and --preset {options.preset} exclude each other: use one of them")
    preset, settings = options.file or options.preset, options.settings or {}
    if preset is None:
        specs = [spec_of(options.grid, options.prompts, settings)]
    else:
        named = [*_given(options.grid), *_given(options.prompts)]
        if named:
            raise UsageError(f"{preset} defines the prediction: leave out {named[0]}, or use --set KEY=VALUE")
        specs = predict_specs(preset, settings=settings)
    if options.goodput:
        specs = [dataclasses.replace(spec, goodput=options.goodput) for spec in specs]
    if options.record is not None:
        check_recordable(specs, options.record)
    prediction = predict(specs)
    if options.record is not None:
        _record(prediction, specs[0], options.record)
    if options.as_json:
        console.out_json(prediction_json(prediction))
    else:
        _print_cells(prediction)
        if options.record is not None:
            console.out(f"recording  {options.record}")
    return int(ExitCode.OK)


def _given(options: GridOptions | PromptOptions) -> list[str]:
    """Return the spelling of each option that was given."""
    return [each.spelling for each in declared(type(options)) if getattr(options, each.name) != each.default]


def _record(prediction: Prediction, spec: PredictSpec, path: Path) -> None:
    failed = next((each.error for each in prediction.cells if each.error), None)
    if failed is not None:
        raise UsageError(f"--record: a cell of the run cannot start: {failed}")
    record_prediction(spec, path)


def spec_of(grid: GridOptions, prompts: PromptOptions, settings: Mapping[str, str]) -> PredictSpec:
    """Return the grid of plain options; without a rate a trace has its own, and all other requests are sent at once."""
    usual = WorkloadConfig()
    given = from_same_fields(
        WorkloadConfig,
        prompts,
        dataset=prompts.dataset_name,
        input_len=grid.input_len or usual.input_len,
        output_len=grid.output_len or usual.output_len,
        arrivals=grid.arrivals or "",
    )
    workload, replay = resolved(given)
    num_prompts = grid.num_prompts or (DEFAULT_STAGE.num_prompts if replay is None else replay.requests)
    rates = grid.request_rate or (math.inf if replay is None else replay.rate,)
    stages = tuple(
        StageConfig(max_num_seqs=batch, request_rate=rate, num_prompts=num_prompts)
        for batch, rate in itertools.product(grid.max_num_seqs or (None,), rates)
    )
    check(workload, stages)
    if grid.arrivals not in (None, ALL_AT_ONCE) and all(math.isinf(stage.request_rate) for stage in stages):
        raise UsageError("--arrivals: all requests are due at once: leave it out, or give --request-rate")
    spec = PredictSpec(workload=workload, stages=stages, seed=seed_of(settings), settings=settings)
    return dataclasses.replace(
        spec,
        model=grid.model or spec.model,
        gpu=grid.gpu or spec.gpu,
        engine_profile=grid.engine_profile or spec.engine_profile,
    )


def _print_cells(prediction: Prediction) -> None:
    if prediction.answer is not None:
        console.out(prediction.answer.text)
    columns = ("", "batch", "req/s", "tok/s", "TTFT\np50", "TTFT\np99", "ITL\np99", "preempt.", "KV max")
    cells = light_table(*columns)
    for each in prediction.cells:
        cells.add_row(*(cell(word) for word in _row(each)))
    out_tables(titled("Predicted (latency in ms)", cells))
    for each in prediction.cells:
        if each.error:
            console.out(f"{_row(each)[0]}: {each.error}")
    took = f"{formats.clock(prediction.simulated_s)} of serving in {formats.seconds(prediction.elapsed_s)}"
    console.out(f"simulated  {took}")


def _row(cell: CellPrediction) -> list[str]:
    name = " · ".join(filter(None, (cell.label or cell.engine, settings_label(cell.settings))))
    heading = [name, formats.count(cell.max_num_seqs), formats.number(cell.request_rate)]
    result = cell.result
    if result is None:
        return [*heading, "cannot start", *[formats.UNKNOWN] * 5]
    return [
        *heading,
        formats.number(result.output_throughput),
        *(formats.in_full(value) for value in (result.ttft_ms.p50, result.ttft_ms.p99, result.itl_ms.p99)),
        formats.exact(result.preemptions),
        formats.percent(result.max_kv_usage),
    ]


def run_validate(*, as_json: bool) -> int:
    """Compare the simulator with the published tables; exit code 99 when a target is missed."""
    tables = validate(predict_specs)
    found = report(tables)
    if as_json:
        console.out_json(found)
    else:
        console.out(*markdown(tables).splitlines())
    if not found["passed"]:
        console.message("the simulator misses a target: see the lines marked MISSED")
        return int(ExitCode.THRESHOLDS)
    return int(ExitCode.OK)
