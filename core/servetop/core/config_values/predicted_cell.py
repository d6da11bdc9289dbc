"""The simulator's prediction of a cell, which the recording of a sweep keeps beside the measurement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedCell:
    """The simulator's prediction of one cell of a sweep."""

    max_num_seqs: int | None
    request_rate: float
    max_concurrency: int | None = None
    output_throughput: float
    """Tokens/s."""
    preemptions: int = 0
