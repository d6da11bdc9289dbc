"""Reads a sweep file's simulator part: the table `sim`, with variants that differ in a few keys."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from servetop.core.errors import UsageError
from servetop.simulator.predict.lengths import SimLengths
from servetop.simulator.predict.predict import PredictSpec

_LENGTH_KEYS = {each.name for each in dataclasses.fields(SimLengths)} - {"kind"}
_SPEC_KEYS = {each.name for each in dataclasses.fields(PredictSpec)} - {"lengths"}
_KNOWN = {*_SPEC_KEYS, *_LENGTH_KEYS, "lengths", "variants"}


def specs_of_preset(
    data: Mapping[str, Any], *, label: str = "", settings: Mapping[str, Any] | None = None
) -> list[PredictSpec]:
    """One spec per variant of a sweep file (parsed TOML); `settings` (`--set`) win over the file's.

    The grid is the file's own (`max_num_seqs`, `request_rate`, `num_prompts`, `seed`, `[workload]` lengths and
    `[engine]` model); `[sim]` adds `gpu`, `engine_profile`, `arrivals`, `lengths` and so on, and each
    `[[sim.variants]]` overrides any of these.
    """
    sim = dict(data.get("sim", {}))
    variants = sim.pop("variants", [{}])
    base = _grid(data) | sim
    return [_spec(base | variant, label=label, settings=settings or {}) for variant in variants]


def _grid(data: Mapping[str, Any]) -> dict[str, Any]:
    engine, workload = data.get("engine", {}), data.get("workload", {})
    grid = {key: data[key] for key in ("max_num_seqs", "request_rate", "num_prompts", "seed", "label") if key in data}
    lengths = {key: workload[key] for key in ("input_len", "output_len") if key in workload}
    return grid | lengths | ({"model": engine["model"]} if "model" in engine else {})


def _spec(keys: Mapping[str, Any], *, label: str, settings: Mapping[str, Any]) -> PredictSpec:
    unknown = [key for key in keys if key not in _KNOWN]
    if unknown:
        near = difflib.get_close_matches(unknown[0], _KNOWN, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(_KNOWN))}"
        raise UsageError(f"{label or 'preset'}: unknown key {unknown[0]!r} in [sim]: {hint}")
    lengths = SimLengths(
        kind=keys.get("lengths", "fixed"), **{key: value for key, value in keys.items() if key in _LENGTH_KEYS}
    )
    own = {key: value for key, value in keys.items() if key in _SPEC_KEYS}
    own["settings"] = {**keys.get("settings", {}), **settings}
    own["label"] = keys.get("label", label)
    if "seed" in settings:
        own["seed"] = _seed(settings["seed"])
    for key, kind in (("max_num_seqs", int), ("request_rate", float)):
        if key in own:
            values = own[key] if isinstance(own[key], list | tuple) else [own[key]]
            own[key] = tuple(kind(value) for value in values)
    return PredictSpec(lengths=lengths, **own)


def _seed(value: Any) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"seed={value}: expected a whole number") from None
