"""Writes a prediction as a recording: the run that it predicts, with every request and tick."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from servetop.analysis.diagnosis.run_record import RESTARTING
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig, StageConfig
from servetop.core.config_values.cell_engine import engine_settings
from servetop.core.config_values.cell_workload import cell_workload, cell_workloads
from servetop.core.errors import UsageError
from servetop.core.events import EngineSample, Note, RequestRecord, Severity
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.format.request_codec import last_known_at
from servetop.recordings.write.connection import check_new
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.run.exit_code import close_recording
from servetop.run.loop.stage_plan import EngineNeeds
from servetop.run.manifest.versions import versions
from servetop.run.sweep.presets import preset_folder
from servetop.simulator.predict.predict import PredictSpec, engine_of_cell
from servetop.simulator.virtual_run.joined_runs import joined
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts, VirtualRunPlan
from servetop.workload.arrivals.arrival_spec import IN_PROCESS_BURST, parse_arrivals

_NO_COSTS = ClientCosts(per_request=0.0, per_chunk=0.0, per_beat=0.0)


def check_recordable(specs: Sequence[PredictSpec], path: Path) -> None:
    """UsageError for predictions that no recording can show; RecordingError if the file exists."""
    check_new(path)
    if len(specs) != 1:
        raise UsageError(
            f"--record writes one run, and this file has {len(specs)} variants: leave one, or --record out"
        )
    for workload in cell_workloads(specs[0].workload, specs[0].stages):
        if workload.n > 1 or workload.cancel_fraction:
            raise UsageError("--record: a recorded prediction has one completion a request, and cancels none")
        if parse_arrivals(workload.arrivals).name == IN_PROCESS_BURST:
            raise UsageError(
                f'--record: no client sends {IN_PROCESS_BURST}: give --arrivals burst, or write arrivals = "burst" '
                f"into a copy of the file; presets are in {preset_folder()}"
            )
    if str(specs[0].settings.get("time_scale", "1")) not in {"1", "1.0"}:
        raise UsageError("--record: leave out --set time_scale")


def record_prediction(spec: PredictSpec, path: Path) -> None:
    """Write the run to a new file, its stages one after the other; RecordingError if it exists.

    Stages of equal settings follow each other on one engine; the next ones have a new engine, as each cell of a
    prediction, and a note where a measured run would restart its own.
    """
    run, notes = _run_parts(spec)
    recorder = write_virtual_run(dataclasses.replace(run, header=_header(run)), path)
    if notes:
        recorder.commit(TickTransaction(tick=None, notes=notes))
    close_recording(recorder, run.end, run.header.config)


def _run_parts(spec: PredictSpec) -> tuple[VirtualRun, list[Note]]:
    """Run the stages, split where settings change; return one run, and a note for each restart of its engine."""
    stages = [stage for stage in spec.stages if not stage.warmup]
    parts = [
        list(part)
        for _, part in itertools.groupby(stages, key=lambda stage: (stage.settings, _needs(spec, stage).start))
    ]
    runs: list[VirtualRun] = []
    begins, notes, first = [0.0], list[Note](), 0
    for part in parts:
        if runs:
            begins.append(runs[-1].ticks[-1].end)
            notes += _restart(_needs(spec, stages[first - 1]), _needs(spec, part[0]), at=begins[-1])
        runs.append(run_virtually(_plan(spec, part, begin=begins[-1], first=first)))
        first += len(part)
    if len(runs) == 1:
        return runs[0], notes
    return joined(runs, _config(spec, stages), begins=begins), notes


def _needs(spec: PredictSpec, stage: StageConfig) -> EngineNeeds:
    start = None if spec.restart is None else stage.repeat
    return EngineNeeds(max_num_seqs=stage.max_num_seqs, settings=engine_settings(stage.settings), start=start)


def _restart(running: EngineNeeds, needs: EngineNeeds, *, at: float) -> list[Note]:
    """Return the note of a restart; none if the simulator would serve the next cell without one."""
    if dataclasses.replace(needs, max_num_seqs=None).met_by(running):
        return []
    text = f"{needs.change_from(running)}: {RESTARTING}"
    return [Note(at=at, severity=Severity.INFO, source="engine", text=text)]


def write_virtual_run(run: VirtualRun, path: Path) -> Recorder:
    """Write all ticks of a run to a new file, and return its recorder, to be closed; RecordingError if it exists."""
    recorder = Recorder.create(path, run.header)
    newest: EngineSample | None = None
    ended = {index: list(part) for index, part in itertools.groupby(run.records, key=_tick_of_end)}
    scraped = {
        at: list(part) for at, part in itertools.groupby(run.replica_samples, key=lambda each: each.scrape_start)
    }
    stages, lines = _by_tick(run.stages), _by_tick(run.log_lines)
    for tick in run.ticks:
        samples = () if tick.engine is None or tick.engine is newest else (tick.engine,)
        newest = tick.engine
        recorder.commit(
            TickTransaction(
                tick=tick,
                requests=ended.get(tick.index, ()),
                engine_samples=samples,
                replica_samples=scraped.get(tick.end, ()),
                gpu_samples=tick.gpus,
                stages=stages[tick.index],
                log_lines=lines[tick.index],
            )
        )
    return recorder


class _Event(Protocol):
    @property
    def at(self) -> float: ...


_AnyEvent = TypeVar("_AnyEvent", bound=_Event)


def _by_tick(events: Iterable[_AnyEvent]) -> defaultdict[int, list[_AnyEvent]]:
    found: defaultdict[int, list[_AnyEvent]] = defaultdict(list)
    for each in events:
        found[int(each.at / TICK_SECONDS)].append(each)
    return found


def _tick_of_end(record: RequestRecord) -> int:
    return int(last_known_at(record) / TICK_SECONDS)


def _header(run: VirtualRun) -> RunHeader:
    return dataclasses.replace(run.header, anchor=ClockAnchor.take(), versions=versions(), predicted=True)


def _plan(spec: PredictSpec, stages: Sequence[StageConfig], *, begin: float, first: int) -> VirtualRunPlan:
    """The run of stages of one engine, the first with the number `first`.

    Its client takes no time, and its engine begins with the batch limit of its stages.
    """
    engine = engine_of_cell(spec, stages[0])
    settings = dict(engine.settings)
    if stages[0].max_num_seqs is not None:
        settings["max_num_seqs"] = stages[0].max_num_seqs
    config = _config(spec, stages)
    return VirtualRunPlan(
        config=dataclasses.replace(
            config,
            engine=dataclasses.replace(config.engine, model=engine.model),
            workload=cell_workload(spec.workload, stages[0].settings),
        ),
        gpu=engine.gpu,
        engine_profile=engine.engine_profile,
        settings=settings,
        client=_NO_COSTS,
        replicas=spec.replicas,
        router=spec.router,
        at_boundaries=True,
        token_times=True,
        begin=begin,
        first_stage=first,
    )


def _config(spec: PredictSpec, stages: Sequence[StageConfig]) -> RunConfig:
    settings = {key: value for key, value in spec.settings.items() if key != "seed"}
    if stages[0].max_num_seqs is not None:
        settings["max_num_seqs"] = stages[0].max_num_seqs
    return RunConfig(
        engine=EngineConfig(model=spec.model, extra_args=("--gpu", spec.gpu, "--engine-profile", spec.engine_profile)),
        workload=spec.workload,
        stages=tuple(stages),
        restart=spec.restart,
        seed=spec.seed,
        goodput=spec.goodput,
        drain_at_stages=spec.sweep,
        drain_timeout=math.inf,
        label=spec.label,
        metadata={key: str(value) for key, value in settings.items()},
    )
