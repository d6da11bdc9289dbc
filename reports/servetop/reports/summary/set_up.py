"""The set-up of a run in its summary: date, workload and load, with the key names of `vllm bench serve`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from servetop.analysis.columns.run_columns import RunColumns
from servetop.analysis.summary.set_up_types import RampSummary, RunSetUp
from servetop.core.config import StageConfig
from servetop.core.events import StageChange
from servetop.core.units import MS_PER_S

_ENDPOINT_TYPES = {"completions": "openai", "chat": "openai-chat", "responses": "openai-responses"}
"""Endpoint types in vLLM's benchmark, by endpoint."""


def set_up_of(run: RunColumns) -> RunSetUp:
    """Return what was run, from the configuration and the stages; a value that differs between stages is None."""
    config, facts = run.header.config, run.header.engine
    changes = [stage.change for stage in run.stages if not stage.change.warmup]
    constant = [] if any(attempt.steered for attempt in run.attempts.values()) else changes
    endpoint = config.workload.endpoint or (facts.endpoints[0] if facts else "completions")
    ramp = next((stage for stage in config.stages if stage.ramp_from is not None and not stage.warmup), None)
    return RunSetUp(
        metadata=config.metadata,
        date=datetime.fromtimestamp(run.header.anchor.wall_epoch_s).strftime("%Y%m%d-%H%M%S"),
        endpoint_type=_ENDPOINT_TYPES.get(endpoint, endpoint),
        backend=config.engine.name if facts is None else facts.name,
        label=config.label or None,
        model_id=(facts and facts.model) or config.engine.model or None,
        tokenizer_id=config.workload.tokenizer or None,
        request_rate=_common(constant, "request_rate"),
        burstiness=config.workload.burstiness,
        max_concurrency=_common(constant, "max_concurrency"),
        goodput=tuple(f"{each}:{limit * MS_PER_S:g}" for each, limit in config.goodput.items()) or None,
        ramp=None if ramp is None or len(changes) != 1 else _ramp_summary(ramp),
    )


def _ramp_summary(stage: StageConfig) -> RampSummary:
    return RampSummary(
        ramp_up_strategy=stage.ramp_strategy, ramp_up_start_rps=stage.ramp_from, ramp_up_end_rps=stage.request_rate
    )


def _common(changes: Iterable[StageChange], name: str) -> Any:
    """Return a value that is the same in all stages; None if it differs."""
    values = {getattr(change, name) for change in changes}
    return values.pop() if len(values) == 1 else None
