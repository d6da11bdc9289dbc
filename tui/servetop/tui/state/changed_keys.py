"""What differs between the headers of two runs, key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from servetop.core.config import to_data
from servetop.core.interfaces.run_source import RunHeader

_UNRELATED = ("label", "metadata", "predicted", "engine.pid", "engine.url", "engine.replica_urls")
"""Settings that name a run or its place, and change nothing in it."""


@dataclass(frozen=True, slots=True)
class ChangedKey:
    """One setting or fact that differs."""

    key: str
    run: str
    """Its value in the run on the screen; empty if it has none."""
    baseline: str


def changed_keys(run: RunHeader, baseline: RunHeader) -> tuple[ChangedKey, ...]:
    """The settings, facts of the engine, versions and host facts that differ, in this order."""
    one, other = dict(_flat(_described(run))), dict(_flat(_described(baseline)))
    keys = [key for key in dict.fromkeys((*one, *other)) if one.get(key) != other.get(key)]
    return tuple(ChangedKey(key, one.get(key, ""), other.get(key, "")) for key in keys)


def _described(header: RunHeader) -> dict[str, Any]:
    """The header without what only names it; the engine as detected has precedence over its configuration."""
    config = to_data(header.config)
    config["workload"] = {key: value for key, value in config["workload"].items() if key != "headers"}
    engine = config["engine"] | (to_data(header.engine) if header.engine else {})
    described = config | {"engine": engine, "versions": header.versions, "host": header.host}
    return {key: value for key, value in described.items() if key not in _UNRELATED}


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if name in _UNRELATED:
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        else:
            yield name, "" if value is None else str(value)
