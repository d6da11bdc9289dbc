"""The table `[sim]` of a sweep file: the simulated machine, and variants of it that are predicted one by one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from servetop.core.errors import UsageError

SIMULATOR_KEYS = ("gpu", "engine_profile", "settings", "replicas", "router")
"""Keys that describe the machine; a variant may have keys of the sweep file and a label too."""


def variants_of(sim: Mapping[str, Any], *, where: str) -> list[Mapping[str, Any]]:
    """The variants of the table, a single empty one without any; UsageError for keys that belong elsewhere."""
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
    """A sweep file's data with `arrivals` of `[sim]`, where earlier versions had them, moved to the file."""
    sim = data.get("sim", {})
    if not isinstance(sim, Mapping) or "arrivals" not in sim:
        return data
    kept = {key: value for key, value in sim.items() if key != "arrivals"}
    return {"arrivals": sim["arrivals"]} | data | {"sim": kept}


def simulator_flags(sim: Mapping[str, Any]) -> tuple[str, ...]:
    """Command-line arguments of a simulator in real time that is this machine."""
    flags = {"gpu": "--gpu", "engine_profile": "--engine-profile"}
    return tuple(text for key, flag in flags.items() if key in sim for text in (flag, str(sim[key])))
