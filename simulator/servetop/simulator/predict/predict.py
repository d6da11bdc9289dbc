"""Predictions: a grid of batch sizes and request rates, each cell a whole run in virtual time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from servetop.core.clock import MonotonicClock
from servetop.core.errors import UsageError
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.predict.arrivals import Bursts, OpenLoop, at_once, constant, poisson, spaced
from servetop.simulator.predict.cell_result import cell_of
from servetop.simulator.predict.lengths import SimLengths
from servetop.simulator.predict.router import ROUTERS, ReplicaRouter
from servetop.simulator.predict.virtual_time import Arrivals, VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.simulator.scheduling.sim_request import SimRequest

ARRIVAL_KINDS = ("burst", "spaced", "constant", "poisson", "all-at-once")


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictSpec:
    """What to predict. Every combination of `max_num_seqs` and `request_rate` is a cell.

    `arrivals`: `burst` (once a second in the engine's loop), `spaced` (1000 // rate ms), `constant`, `poisson`,
    `all-at-once`; an infinite rate is all at once. `settings` are those of `settings.apply`.
    """

    label: str = ""
    model: str = "llama-2-7b"
    gpu: str = "a100-40"
    engine_profile: str = "vllm-0.2.1"
    max_num_seqs: tuple[int, ...] = (0,)
    """0: the profile's."""
    request_rate: tuple[float, ...] = (math.inf,)
    num_prompts: int = 1000
    arrivals: str = "poisson"
    lengths: SimLengths = field(default_factory=SimLengths)
    seed: int = 0
    replicas: int = 1
    router: str = "round-robin"
    settings: Mapping[str, Any] = field(default_factory=dict)


def predict(specs: PredictSpec | Iterable[PredictSpec]) -> dict[str, Any]:
    """`{"cells": [...], "elapsed_s", "simulated_s"}`; a cell whose engine cannot start has `error` instead of numbers.

    UsageError when nothing can start, or when an option makes no sense.
    """
    clock = MonotonicClock()
    many = (specs,) if isinstance(specs, PredictSpec) else tuple(specs)
    cells = [
        _cell_or_error(spec, batch=batch, rate=rate)
        for spec in many
        for batch, rate in itertools.product(spec.max_num_seqs, spec.request_rate)
    ]
    errors = [cell["error"] for cell in cells if "error" in cell]
    if errors and len(errors) == len(cells):
        raise UsageError(errors[0])
    simulated = sum(cell.get("duration", 0.0) for cell in cells)
    return {"cells": cells, "elapsed_s": clock.now(), "simulated_s": simulated}


def predict_cell(spec: PredictSpec, *, batch: int, rate: float) -> dict[str, Any]:
    """One cell; UsageError when the engine cannot start."""
    _check(spec, rate)
    engine = _sim_spec(spec, batch)
    requests = spec.lengths.requests(spec.num_prompts, seed=spec.seed)
    arrivals = _arrivals(spec, requests, rate=rate, scale=engine.time_scale)
    engines = [VirtualEngine(build_scheduler(engine)) for _ in range(spec.replicas)]
    if len(engines) == 1:
        engines[0].run(arrivals)
    else:
        ReplicaRouter(engines, router=spec.router).run(arrivals)
    return _heading(spec, batch=batch, rate=rate) | cell_of(engines)


def _cell_or_error(spec: PredictSpec, *, batch: int, rate: float) -> dict[str, Any]:
    try:
        return predict_cell(spec, batch=batch, rate=rate)
    except UsageError as error:
        return _heading(spec, batch=batch, rate=rate) | {"error": str(error)}


def _heading(spec: PredictSpec, *, batch: int, rate: float) -> dict[str, Any]:
    return {
        "engine": spec.engine_profile,
        "model": spec.model,
        "gpu": spec.gpu,
        "max_num_seqs": _sim_spec(spec, batch).batch_limit,
        "request_rate": "inf" if math.isinf(rate) else rate,
        "label": spec.label,
    }


def _sim_spec(spec: PredictSpec, batch: int) -> SimSpec:
    settings = ({"max_num_seqs": batch} if batch else {}) | {
        key: value for key, value in spec.settings.items() if key != "seed"
    }
    return sim_spec(spec.model, gpu=spec.gpu, engine=spec.engine_profile, settings=settings)


def _arrivals(spec: PredictSpec, requests: list[SimRequest], *, rate: float, scale: float) -> Arrivals:
    count = len(requests)
    if spec.arrivals == "all-at-once" or math.isinf(rate):
        return OpenLoop(requests, at_once(count))
    match spec.arrivals:
        case "burst":
            size = max(round(rate), 1)
            return Bursts(requests, per_burst=size, period=scale * size / rate)
        case "spaced":
            return OpenLoop(requests, spaced(count, rate=rate, scale=scale))
        case "constant":
            return OpenLoop(requests, constant(count, rate=rate, scale=scale))
    return OpenLoop(requests, poisson(count, rate=rate, seed=spec.seed, scale=scale))


def _check(spec: PredictSpec, rate: float) -> None:
    if not rate > 0:
        raise UsageError(f"request_rate must be above 0, not {rate}")
    if spec.num_prompts < 1:
        raise UsageError(f"num_prompts must be at least 1, not {spec.num_prompts}")
    if spec.replicas < 1:
        raise UsageError(f"replicas must be at least 1, not {spec.replicas}")
    if spec.lengths.input_len < 1 or spec.lengths.output_len < 1:
        raise UsageError("input_len and output_len must be at least 1")
    if spec.arrivals not in ARRIVAL_KINDS:
        raise UsageError(f"no arrivals {spec.arrivals!r}: known are {', '.join(ARRIVAL_KINDS)}")
    if spec.router not in ROUTERS:
        raise UsageError(f"no router {spec.router!r}: known are {', '.join(ROUTERS)}")
