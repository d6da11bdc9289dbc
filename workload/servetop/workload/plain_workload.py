"""Detects workloads without a dataset, trace or distribution, so that a run can start without NumPy."""

from __future__ import annotations

import dataclasses

from servetop.core.config import WorkloadConfig

_PLAIN = (
    "input_len",
    "output_len",
    "ignore_eos",
    "endpoint",
    "temperature",
    "timeout",
    "store_texts",
    "extra_body",
    "headers",
    "header_env",
)
"""Fields that refer to no dataset, trace or arrival process."""


def is_plain(workload: WorkloadConfig) -> bool:
    """Whether prompts are random with fixed lengths and arrivals are Poisson, so that there is nothing to validate."""
    kept = {name: getattr(workload, name) for name in _PLAIN}
    return dataclasses.replace(WorkloadConfig(), **kept) == workload
