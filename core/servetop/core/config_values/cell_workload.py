"""The workload of one cell of a sweep: that of the run, with what the settings of the cell replace."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from servetop.core.config import StageConfig, WorkloadConfig, from_data, to_data

_FIELDS = frozenset(each.name for each in dataclasses.fields(WorkloadConfig))


def cell_workload(workload: WorkloadConfig, settings: Mapping[str, Any]) -> WorkloadConfig:
    """Return the workload of a cell; the same object without settings of a workload. UsageError for a wrong type."""
    own = {name: value for name, value in settings.items() if name in _FIELDS}
    return from_data(WorkloadConfig, to_data(workload) | own, where="settings of a cell") if own else workload


def cell_workloads(workload: WorkloadConfig, stages: Iterable[StageConfig]) -> list[WorkloadConfig]:
    """Return the different workloads of some stages, in order; that of the run if there are none."""
    found: list[WorkloadConfig] = []
    for stage in stages:
        own = cell_workload(workload, stage.settings)
        if own not in found:
            found.append(own)
    return found or [workload]
