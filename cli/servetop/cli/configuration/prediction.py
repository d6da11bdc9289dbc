"""From a sweep file to predictions of its cells: its own load on the machine that its table `[sim]` describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servetop.cli.configuration.sweep_file import SweepFile, split_keys, sweep_of
from servetop.cli.configuration.sweep_plan import planned_load
from servetop.cli.options.declaration import GivenValues
from servetop.cli.options.file_keys import ENGINE_ARGS, values_of_file
from servetop.cli.options.parsers import parse_goodput
from servetop.core.errors import UsageError
from servetop.run.sweep.presets import sweep_data
from servetop.run.sweep.simulator_table import SIMULATOR_KEYS, SimulatedMachine, machine_of, variants_of
from servetop.simulator.predict.predict import PredictSpec

_REAL_ENGINE = (
    "engine",
    "url",
    "front_door",
    "metrics_url",
    "api_key_env",
    "engine_command",
    ENGINE_ARGS,
    "launcher",
    "image",
)
"""Options that a prediction ignores."""


def predict_specs(
    name: str, *, model: str | None = None, settings: Mapping[str, str] | None = None
) -> list[PredictSpec]:
    """Return a sweep file's cells as predictions, one spec for each of its `[[sim.variants]]`, or one without variants.

    A variant replaces keys of the file (its label, grid, workload, model) and of `[sim]`. `model` replaces the file's,
    and `settings` (`--set`) those of `[sim]`.
    """
    return [spec for _, spec in _specs(name, model=model, settings=settings or {})]


def spec_of_engine(name: str, engine: str, *, model: str | None = None) -> PredictSpec | None:
    """Return the prediction of what a sweep of this engine measures; None where the file does not tell which it is.

    Of several variants it is the one with this `engine`, else the one with that of the file.
    """
    found = _specs(name, model=model, settings={})
    if len(found) == 1:
        return found[0][1]
    own = sweep_data(name).get("engine")
    names = (engine, own.get("name") if isinstance(own, Mapping) else own)
    for wanted in filter(None, names):
        alike = [spec for variant, spec in found if variant.get("engine") == wanted]
        if len(alike) == 1:
            return alike[0]
    return None


def _specs(name: str, *, model: str | None, settings: Mapping[str, str]) -> list[tuple[Mapping[str, Any], PredictSpec]]:
    """Return the variants of a sweep file, one without any, and the prediction of each."""
    file = sweep_data(name)
    sim = file.pop("sim", {})
    variants = variants_of(sim, where=name)
    own, rest = split_keys(file, where=name)
    values = {**values_of_file(rest, where=name), **({"model": model} if model else {})}
    specs = []
    for number, variant in enumerate(variants):
        where = f"{name}: variant {number + 1} of [sim]" if sim.get("variants") else name
        load = {key: value for key, value in variant.items() if key not in (*SIMULATOR_KEYS, "label")}
        changed, replaced = split_keys(load, where=where)
        sweep = sweep_of(own | changed, _simulated(values | values_of_file(replaced, where=where)), where=where)
        label, machine = str(variant.get("label", sweep.label)), machine_of(sim, variant, where=name)
        specs.append((variant, _predict_spec(sweep, machine, label=label, settings=settings)))
    return specs


def _predict_spec(
    sweep: SweepFile, machine: SimulatedMachine, *, label: str, settings: Mapping[str, str]
) -> PredictSpec:
    workload, stages = planned_load(sweep)
    return PredictSpec(
        label=label,
        model=sweep.engine.model,
        gpu=machine.gpu,
        engine_profile=machine.engine_profile,
        workload=workload,
        stages=stages,
        seed=seed_of(settings, sweep.seed),
        restart=sweep.restart,
        replicas=machine.replicas,
        router=machine.router,
        goodput=parse_goodput(sweep.goodput),
        settings={**machine.settings, **settings},
    )


def _simulated(values: GivenValues) -> GivenValues:
    """Option values without those of a real engine, except its model."""
    return {key: value for key, value in values.items() if key not in _REAL_ENGINE}


def seed_of(settings: Mapping[str, str], default: int = 0) -> int:
    """Return the seed of `--set seed=…`, which is the run's, not the engine's."""
    try:
        return int(settings.get("seed", default))
    except ValueError:
        raise UsageError(f"--set seed={settings['seed']}: give a whole number") from None
