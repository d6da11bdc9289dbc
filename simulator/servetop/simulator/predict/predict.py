"""Predictions: the cells of a sweep, each a whole run of its workload in virtual time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.config_values.cell_engine import engine_settings
from servetop.core.config_values.cell_settings import FLAGS, MODEL
from servetop.core.config_values.cell_workload import cell_workload
from servetop.core.errors import UsageError
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.predict.answer import predicted_answer
from servetop.simulator.predict.cell_clients import VirtualSender
from servetop.simulator.predict.cell_result import cell_result
from servetop.simulator.predict.prediction import CellPrediction, CellResult, Prediction
from servetop.simulator.predict.router import ROUTERS, ReplicaRouter
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.workload.stages.plan import check_stage
from servetop.workload.validation import check_fits

DEFAULT_STAGE = StageConfig(num_prompts=1000)
"""All requests at once."""


_SIMULATED = {"tensor-parallel-size": "tensor_parallel", "tp-size": "tensor_parallel", "tp": "tensor_parallel"}
"""Settings of the simulated engine by the flag of a real one, where the names differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictSpec:
    """What to predict: a run whose stages are cells. Each cell has a fresh engine and the requests of its stage."""

    label: str = ""
    model: str = "llama-2-7b"
    gpu: str = "a100-40"
    engine_profile: str = "vllm-0.2.1"
    workload: WorkloadConfig = WorkloadConfig()
    stages: tuple[StageConfig, ...] = (DEFAULT_STAGE,)
    """`max_num_seqs` of None: the profile's."""
    seed: int = 0
    restart: str | None = None
    """When a measured sweep restarts its engine besides, as in `RunConfig`; only a recorded prediction shows it."""
    sweep: bool = True
    """The cells send what those of a sweep send; otherwise the stages share one stream of prompts, as in a ramp."""
    replicas: int = 1
    router: str = "round-robin"
    goodput: Mapping[str, float] = field(default_factory=dict)
    """Objectives in seconds by metric."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the simulated engine by name; `settings.apply` lists them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedEngine:
    """What an engine of the simulator is built from."""

    model: str
    gpu: str
    engine_profile: str
    settings: Mapping[str, Any]
    """By name; `settings.apply` lists them."""


def predict(specs: PredictSpec | Iterable[PredictSpec]) -> Prediction:
    """Predict all cells; one whose engine cannot start has an error in place of results.

    UsageError when nothing can start, or when an option makes no sense.
    """
    clock = MonotonicClock()
    many = (specs,) if isinstance(specs, PredictSpec) else tuple(specs)
    cells = tuple(cell for spec in many for cell in _cells(spec))
    results = [cell.result for cell in cells if cell.result is not None]
    if cells and not results:
        raise UsageError(cells[0].error)
    answer = predicted_answer(cells, objectives=many[0].goodput if many else {})
    simulated = sum(result.duration for result in results)
    return Prediction(answer=answer, cells=cells, elapsed_s=clock.now(), simulated_s=simulated)


def predict_cell(spec: PredictSpec, stage: StageConfig, *, sender: VirtualSender | None = None) -> CellResult:
    """The results of one cell, the first of a run without a `sender`; UsageError when the engine cannot start."""
    _check(spec, stage)
    engine = _sim_spec(spec, stage)
    if stage.settings:
        check_fits(cell_workload(spec.workload, stage.settings), engine.context_limit)
    engines = [VirtualEngine(build_scheduler(engine)) for _ in range(spec.replicas)]
    client = (sender or VirtualSender(spec.workload, engine, seed=spec.seed, sweep=spec.sweep)).client(stage)
    if len(engines) == 1:
        engines[0].run(client)
    else:
        ReplicaRouter(engines, router=spec.router).run(client)
    return cell_result(engines, objectives=spec.goodput)


def _cells(spec: PredictSpec) -> Iterator[CellPrediction]:
    first = dataclasses.replace(spec.stages[0], settings={})
    sender = VirtualSender(spec.workload, _sim_spec(spec, first), seed=spec.seed, sweep=spec.sweep)
    for stage in spec.stages:
        if stage.warmup:
            continue
        cell = _without_result(spec, stage)
        try:
            yield dataclasses.replace(cell, result=predict_cell(spec, stage, sender=sender))
        except UsageError as error:
            yield dataclasses.replace(cell, error=str(error))


def _without_result(spec: PredictSpec, stage: StageConfig) -> CellPrediction:
    return CellPrediction(
        engine=spec.engine_profile,
        model=spec.model,
        gpu=spec.gpu,
        max_num_seqs=_batch_limit(spec, stage),
        request_rate=stage.request_rate,
        max_concurrency=stage.max_concurrency,
        repeat=stage.repeat,
        label=spec.label,
        settings=stage.settings,
    )


def _batch_limit(spec: PredictSpec, stage: StageConfig) -> int:
    """Return the batch limit of a cell; that of its plan, or 0, if the simulator does not know its flags."""
    try:
        return _sim_spec(spec, stage).batch_limit
    except UsageError:
        if not engine_settings(stage.settings):
            raise
        return stage.max_num_seqs or 0


def _sim_spec(spec: PredictSpec, stage: StageConfig) -> SimSpec:
    found = engine_of_cell(spec, stage)
    return sim_spec(found.model, gpu=found.gpu, engine=found.engine_profile, settings=found.settings)


def engine_of_cell(spec: PredictSpec, stage: StageConfig) -> SimulatedEngine:
    """Return the engine of a cell: that of the spec with the model and the flags that the cell sets."""
    settings = {} if stage.max_num_seqs is None else {"max_num_seqs": stage.max_num_seqs}
    settings |= {key: value for key, value in spec.settings.items() if key != "seed"}
    own = engine_settings(stage.settings)
    model, gpu = own.pop(MODEL, spec.model), own.pop(f"{FLAGS}gpu", spec.gpu)
    profile = own.pop(f"{FLAGS}engine-profile", spec.engine_profile)
    settings |= {_SIMULATED.get(flag, flag.replace("-", "_")): own[FLAGS + flag] for flag in _flags(own)}
    return SimulatedEngine(model=model, gpu=gpu, engine_profile=profile, settings=settings)


def _flags(settings: Mapping[str, Any]) -> list[str]:
    return [name.removeprefix(FLAGS) for name in settings]


def _check(spec: PredictSpec, stage: StageConfig) -> None:
    check_stage(0, stage)
    if stage.num_prompts is None and stage.duration is None:
        raise UsageError("a prediction needs an end: give num_prompts or duration")
    if spec.replicas < 1:
        raise UsageError(f"replicas must be at least 1, not {spec.replicas}")
    if spec.router not in ROUTERS:
        raise UsageError(f"unknown router {spec.router!r}: known are {', '.join(ROUTERS)}")
