"""The engine of one cell of a sweep: that of the run, with the model and the flags in the settings of the cell."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from servetop.core.config import EngineConfig
from servetop.core.config_values.cell_settings import FLAGS, MODEL


def engine_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a cell for which an engine has to be started: its model and its flags."""
    return {name: value for name, value in settings.items() if name == MODEL or name.startswith(FLAGS)}


def cell_engine(engine: EngineConfig, settings: Mapping[str, Any]) -> EngineConfig:
    """Return the engine that a cell needs; its flags replace those of the run with the same name."""
    own = engine_settings(settings)
    model = str(own.pop(MODEL, engine.model))
    args = list(engine.extra_args)
    for name, value in own.items():
        flag = f"--{name.removeprefix(FLAGS)}"
        args = [*_without(args, flag), *_given(flag, value)]
    return dataclasses.replace(engine, model=model, extra_args=tuple(args))


def _given(flag: str, value: Any) -> list[str]:
    """Return a flag as the arguments that give it: a switch is there or not, a list gives several values."""
    if isinstance(value, bool):
        return [flag] if value else []
    return [flag, *(map(str, value) if isinstance(value, list) else [str(value)])]


def _without(args: Sequence[str], flag: str) -> list[str]:
    """Return arguments without a flag and its values, given as `--flag V` or `--flag=V`."""
    kept: list[str] = []
    dropping = False
    for arg in args:
        name = arg.partition("=")[0]
        if name.startswith("--"):
            dropping = name.replace("_", "-") == flag.replace("_", "-")
        if not dropping:
            kept.append(arg)
    return kept
