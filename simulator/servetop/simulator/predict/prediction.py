"""The results of a prediction, and their JSON form, which `servetop predict --json` prints."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servetop.core.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLatency:
    """Statistics of one latency in milliseconds; zeros where no request was completed."""

    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    mean: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """The results of one cell.

    Throughputs are in tokens/s over the time from the first arrival to the last finish, ramp and drain included.
    Requests that the client cancelled count as `cancelled` only, as in the summary of a run.
    """

    request_throughput: float
    """Completed requests/s."""
    share_within: float | None
    """Fraction of the requests that met all objectives, without cancelled ones; None without objectives."""
    saturated: bool
    """Whether more than 5 % of the requests still waited for their first token when the last one arrived."""
    limit: str | None
    """What the engine ran out of, such as `batch-bound`; None if of nothing."""
    output_throughput: float
    total_token_throughput: float
    preemptions: int
    recomputed_tokens: int
    duration: float
    """Seconds from the first arrival to the last finish."""
    completed: int
    cancelled: int
    refused: int
    """Requests beyond the model's context."""
    kv_blocks_total: int
    max_kv_usage: float
    """Share, 0..1; of several replicas the largest."""
    mean_running: float
    ttft_ms: PredictedLatency
    itl_ms: PredictedLatency
    e2el_ms: PredictedLatency


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPrediction:
    """One cell: its settings, and its results, or the reason why the engine cannot start."""

    engine: str
    model: str
    gpu: str
    max_num_seqs: int
    request_rate: float
    """Requests per second; infinity for all at once, which is the string `inf` in JSON."""
    max_concurrency: int | None
    repeat: int
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The settings of the cell besides batch size and load, by name."""
    result: CellResult | None = None
    error: str = ""

    def require_result(self) -> CellResult:
        """Return the results; UsageError for a cell whose engine cannot start."""
        if self.result is None:
            raise UsageError(self.error)
        return self.result


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedAnswer:
    """What a prediction says about the load; loads in requests/s, in closed loops the concurrency."""

    text: str
    """One sentence."""
    label: str
    """The variant that the answer is about; empty without variants."""
    max_num_seqs: int
    kept: float | None
    """The highest load that kept the objectives; without objectives, that did not saturate the engine."""
    missed: float | None
    """The lowest load above it that did not; None if no such load was predicted."""
    limit: str | None
    """What the engine ran out of at that load, such as `batch-bound`; None if of nothing, or without such a load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """All cells of a prediction, and what they say about the load."""

    answer: PredictedAnswer | None
    """None if no engine could start."""
    cells: tuple[CellPrediction, ...]
    elapsed_s: float
    """Seconds that the computation took."""
    simulated_s: float
    """Seconds of serving that were simulated."""


def prediction_json(prediction: Prediction) -> dict[str, Any]:
    """Return the prediction as dictionaries, lists, strings and numbers."""
    return {
        "answer": None if prediction.answer is None else dataclasses.asdict(prediction.answer),
        "cells": [cell_json(cell) for cell in prediction.cells],
        "elapsed_s": prediction.elapsed_s,
        "simulated_s": prediction.simulated_s,
    }


def cell_json(cell: CellPrediction) -> dict[str, Any]:
    """Return a cell as one object: its settings, followed by its results or by `error`."""
    found = dataclasses.asdict(cell)
    result, error, settings = (found.pop(name) for name in ("result", "error", "settings"))
    if settings:
        found["settings"] = settings
    if math.isinf(cell.request_rate):
        found["request_rate"] = "inf"
    return found | ({"error": error} if result is None else result)
