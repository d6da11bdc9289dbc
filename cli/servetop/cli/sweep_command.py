"""`servetop sweep`: a grid of cells in one recording, and its resumption after an interruption."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from servetop.cli.configuration.output import Output
from servetop.cli.configuration.prediction import predict_specs
from servetop.cli.configuration.sweep_file import read_sweep
from servetop.cli.configuration.sweep_grid import LISTS
from servetop.cli.configuration.sweep_plan import sweep_config
from servetop.cli.launch import launch
from servetop.cli.options.declaration import GivenValues
from servetop.cli.options.run_options import SweepOptions
from servetop.core.config import RunConfig, StageConfig
from servetop.core.config_values.cell_engine import engine_settings
from servetop.core.config_values.cell_settings import settings_text
from servetop.core.config_values.predicted_cell import PredictedCell
from servetop.core.errors import ExitCode, UsageError
from servetop.core.text.counted import counted, was_were
from servetop.run import console
from servetop.run.sweep.presets import sweep_data
from servetop.run.sweep.resume_sweep import find_interrupted, rest_of_sweep
from servetop.simulator.predict.predict import predict
from servetop.simulator.predict.prediction import CellPrediction


def run_sweep(options: SweepOptions, given: GivenValues, *, engine_args: Sequence[str], output: Output) -> int:
    """Measure all cells of a sweep file, or those that an interrupted run did not finish; returns the exit code.

    `given` are values that replace those of the file.
    """
    sweep = read_sweep(options.file, given, engine_args)
    if options.max_failures is not None:
        sweep = dataclasses.replace(sweep, max_failures=options.max_failures)
    config = sweep_config(sweep)
    if sweep.engine.url is not None and any("max_num_seqs" in cell.load for cell in sweep.cells):
        console.message("an attached engine keeps its batch size: sweeping max_concurrency instead")
    model = given.get("model")
    model = model if isinstance(model, str) else None
    if options.dry_run and not options.resume:
        return _dry_run(config, options, model=model)
    if not options.resume:
        return launch(dataclasses.replace(config, predicted=predicted_cells(options.file, model=model)), output)
    recording = output.options.record or find_interrupted(config)
    rest = rest_of_sweep(recording, config)
    left = rest.left
    if not left:
        console.message(f"{_whole_text(len(config.stages), skipped=rest.skipped)} in {recording}: nothing to resume")
        from servetop.cli.report.report import print_recording

        return print_recording(str(recording), as_json=output.options.as_json)
    if options.dry_run:
        return _dry_run(dataclasses.replace(config, stages=left), options, model=model)
    console.message(f"{len(left)} of {counted(len(config.stages), 'cell')} left, continuing in {recording}")
    return launch(dataclasses.replace(config, stages=left), output, resume=recording)


def _whole_text(count: int, *, skipped: int) -> str:
    """Return that no cell is left, as the beginning of a sentence."""
    if skipped:
        return f"{counted(count, 'cell')}, of which {skipped:,} {was_were(skipped)} skipped, are"
    return "the one cell is" if count == 1 else f"all {count:,} cells are"


def _dry_run(config: RunConfig, options: SweepOptions, *, model: str | None) -> int:
    from servetop.cli.report.sweep_dry_run import print_dry_run

    predictions = _predictions(options.file, model=model)
    seconds = {(stage.label, stage.repeat): each.result.duration for stage, each in predictions if each.result}
    print_dry_run(config, seconds, as_json=options.output.as_json)
    return int(ExitCode.OK)


def _predictions(file: str, *, model: str | None) -> list[tuple[StageConfig, CellPrediction]]:
    """Return the cells of a sweep file with a table `[sim]` and their predictions; none where that has variants."""
    specs = predict_specs(file, model=model) if "sim" in sweep_data(file) else []
    if len(specs) != 1:
        return []
    try:
        cells = predict(specs).cells
    except UsageError as error:
        if model is None and not any(engine_settings(stage.settings) for stage in specs[0].stages):
            raise
        console.message(f"no prediction: {error}")
        return []
    return list(zip((stage for stage in specs[0].stages if not stage.warmup), cells, strict=True))


def predicted_cells(file: str, *, model: str | None = None) -> tuple[PredictedCell, ...]:
    """Return the prediction of each cell of a sweep file with a table `[sim]`; none where that has several variants.

    `model` replaces the file's; a model that the simulator does not support is reported and not predicted.
    """
    repeats: dict[tuple[object, ...], list[CellPrediction]] = {}
    for _, cell in _predictions(file, model=model):
        if cell.result is not None:
            place = (*(getattr(cell, name) for name in LISTS), settings_text(cell.settings))
            repeats.setdefault(place, []).append(cell)
    return tuple(_mean_of_repeats(cells) for cells in repeats.values())


def _mean_of_repeats(cells: Sequence[CellPrediction]) -> PredictedCell:
    results = [cell.require_result() for cell in cells]
    return PredictedCell(
        max_num_seqs=cells[0].max_num_seqs or None,
        request_rate=cells[0].request_rate,
        max_concurrency=cells[0].max_concurrency,
        output_throughput=sum(result.output_throughput for result in results) / len(results),
        settings=cells[0].settings,
        preemptions=round(sum(result.preemptions for result in results) / len(results)),
    )
