"""The simulator's prediction of a cell, which the recording of a sweep keeps beside the measurement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedCell:
    """The simulator's prediction of one cell of a sweep."""

    max_num_seqs: int | None = None
    """Of the simulated engine, also if the sweep leaves it to the measured one."""
    request_rate: float
    max_concurrency: int | None = None
    output_throughput: float
    """Tokens/s."""
    preemptions: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The settings of the cell besides batch size and load, by name."""
