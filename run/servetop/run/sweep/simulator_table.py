"""The table `[sim]` of a sweep file: the simulated machine, and variants of it that are predicted one by one."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servetop.core.config import from_data
from servetop.core.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedMachine:
    """The part of the table that describes the machine."""

    gpu: str = "a100-40"
    """Name of a GPU profile, or a TOML file."""
    engine_profile: str = "vllm-0.2.1"
    """Name of an engine profile, or a TOML file."""
    replicas: int = 1
    router: str = "round-robin"
    """How requests are distributed over replicas: `round-robin` or `least-loaded`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Numbers of the profiles to replace, as in `--set`."""


SIMULATOR_KEYS = tuple(each.name for each in dataclasses.fields(SimulatedMachine))
"""Keys that describe the machine; a variant may have keys of the sweep file and a label too."""


def machine_of(sim: Mapping[str, Any], variant: Mapping[str, Any], *, where: str) -> SimulatedMachine:
    """Return the machine of one variant of the table; UsageError for a value of a wrong type."""
    data = {key: value for key, value in {**sim, **variant}.items() if key in SIMULATOR_KEYS}
    return from_data(SimulatedMachine, data, where=f"{where}: [sim]")


def variants_of(sim: Mapping[str, Any], *, where: str) -> list[Mapping[str, Any]]:
    """Return the variants of the table, a single empty one without any; UsageError for keys that belong elsewhere."""
    if not isinstance(sim, Mapping):
        raise UsageError(f"{where}: sim = {sim!r}: write a table, [sim]")
    unknown = next((key for key in sim if key not in (*SIMULATOR_KEYS, "variants")), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, SIMULATOR_KEYS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "state the load once, in [workload] or at the top of the file"
        raise UsageError(f"{where}: unknown key {unknown!r} in [sim]: {hint}")
    variants = sim.get("variants") or [{}]
    if not isinstance(variants, list) or not all(isinstance(each, Mapping) for each in variants):
        raise UsageError(f"{where}: variants of [sim] are tables: write [[sim.variants]]")
    return list(variants)


def with_arrivals_of_simulator(data: dict[str, Any]) -> dict[str, Any]:
    """Return a sweep file's data with `arrivals` of `[sim]`, where earlier versions had them, moved to the file."""
    sim = data.get("sim", {})
    if not isinstance(sim, Mapping) or "arrivals" not in sim:
        return data
    kept = {key: value for key, value in sim.items() if key != "arrivals"}
    return {"arrivals": sim["arrivals"]} | data | {"sim": kept}


def simulator_flags(sim: Mapping[str, Any]) -> tuple[str, ...]:
    """Command-line arguments of a simulator in real time that is this machine."""
    flags = {"gpu": "--gpu", "engine_profile": "--engine-profile"}
    return tuple(text for key, flag in flags.items() if key in sim for text in (flag, str(sim[key])))
