"""`servetop verify`: what of a recording is sound and what is not, for people and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from servetop.cli import console
from servetop.core.errors import ExitCode
from servetop.recordings.catalog import resolve
from servetop.recordings.verifying import Check, verify


def run_verify(names: Sequence[str], *, as_json: bool) -> int:
    """Print the checks of each recording; OK when all are sound, else RUN_FAILED."""
    found = {path: verify(path) for path in map(resolve, names)}
    if as_json:
        console.out_json([_as_data(path, checks) for path, checks in found.items()])
    else:
        for path, checks in found.items():
            console.out(f"{path}: {'sound' if _sound(checks) else 'not sound'}", *map(_line, checks))
    return int(ExitCode.OK if all(map(_sound, found.values())) else ExitCode.RUN_FAILED)


def _as_data(path: Path, checks: Sequence[Check]) -> dict[str, object]:
    return {"recording": str(path), "sound": _sound(checks), "checks": [dataclasses.asdict(each) for each in checks]}


def _line(check: Check) -> str:
    return f"  {'✓' if check.sound else '✗'} {check.name:<10}  {check.detail}"


def _sound(checks: Sequence[Check]) -> bool:
    return all(check.sound for check in checks)
