"""`servetop sweep`: a grid of cells in one recording, and its resumption after an interruption."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from servetop.cli.configuration.output import Output
from servetop.cli.configuration.prediction import spec_of_engine
from servetop.cli.configuration.published_values import published_study
from servetop.cli.configuration.sweep_file import read_sweep
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
from servetop.run.sweep.presets import example_sweep, sweep_data
from servetop.run.sweep.resume_sweep import find_interrupted, rest_of_sweep
from servetop.simulator.predict.predict import predict
from servetop.simulator.predict.prediction import CellPrediction

if TYPE_CHECKING:
    from servetop.cli.framework.command_line import CommandLine

_Place = tuple[int | None, float, int | None, str | None]
"""Batch size, rate, concurrency and settings of a cell."""
_OF_THE_ENGINE = ("engine", "model", "url", "api_key_env", "engine_command")
"""Options of the command that override the file."""


def measure_grid(line: CommandLine[SweepOptions]) -> int:
    """Run the sweep of a command line, or print the example of a sweep file."""
    options = line.options
    if options.example:
        console.out(*example_sweep().splitlines())
        return 0
    return run_sweep(
        options,
        {name: value for name, value in line.given.items() if name in _OF_THE_ENGINE},
        engine_args=line.invocation.engine_args,
        output=Output(options=options.output, sender=line.invocation.sender, given=line.given),
    )


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
        return launch(_with_figures(config, options.file, model=model), output)
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

    predictions = _predictions(options.file, config, model=model)
    seconds = {(stage.label, stage.repeat): each.result.duration for stage, each in predictions if each.result}
    print_dry_run(config, seconds, as_json=options.output.as_json)
    return int(ExitCode.OK)


def _predictions(file: str, config: RunConfig, *, model: str | None) -> list[tuple[StageConfig, CellPrediction]]:
    """Return the cells of a sweep file with a table `[sim]` and their predictions.

    None where that has variants and does not tell which of them the engine is.
    """
    spec = spec_of_engine(file, config.engine.name, model=model) if "sim" in sweep_data(file) else None
    if spec is None:
        return []
    if config.engine.url is not None:
        spec = dataclasses.replace(spec, stages=tuple(map(_attached, spec.stages)))
    try:
        cells = predict(spec).cells
    except UsageError as error:
        if model is None and not any(engine_settings(stage.settings) for stage in spec.stages):
            raise
        console.message(f"no prediction: {error}")
        return []
    return list(zip((stage for stage in spec.stages if not stage.warmup), cells, strict=True))


def _attached(stage: StageConfig) -> StageConfig:
    """Return a cell as it is measured at a URL, where the batch size is a limit of the concurrency."""
    limit = stage.max_num_seqs if stage.max_concurrency is None else stage.max_concurrency
    return dataclasses.replace(stage, max_num_seqs=None, max_concurrency=limit)


def predicted_cells(file: str, config: RunConfig, *, model: str | None = None) -> tuple[PredictedCell, ...]:
    """Return the prediction of each cell of a sweep file with a table `[sim]`.

    None where that has several variants, of which none is the engine. `model` replaces the file's; a model that the
    simulator does not support is reported and not predicted.
    """
    repeats: dict[_Place, list[CellPrediction]] = {}
    planned = {_place(stage) for stage in config.stages if not stage.warmup}
    for stage, cell in _predictions(file, config, model=model):
        place = _place(stage)
        if place not in planned:  # of a variant that sets the batch size, which the sweep leaves to the engine
            place = (None, *place[1:])
        if cell.result is not None and place in planned:
            repeats.setdefault(place, []).append(cell)
    alike = [cells for cells in repeats.values() if len({cell.max_num_seqs for cell in cells}) == 1]
    return tuple(map(_mean_of_repeats, alike))


def _place(stage: StageConfig) -> _Place:
    return stage.max_num_seqs, stage.request_rate, stage.max_concurrency, settings_text(stage.settings)


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


def _with_figures(config: RunConfig, file: str, *, model: str | None) -> RunConfig:
    """Return the run with what the simulator and a published study say of its cells."""
    return dataclasses.replace(
        config,
        predicted=predicted_cells(file, config, model=model),
        published=published_study(file, config.engine, config.stages),
    )
