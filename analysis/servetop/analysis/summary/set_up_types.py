"""The set-up of a run in its summary; fields are in the order of the JSON keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from servetop.analysis.field_metadata import FLAT, OMITTED, RATE


@dataclass(frozen=True, slots=True, kw_only=True)
class RampSummary:
    """The ramp of a run with one stage."""

    ramp_up_strategy: str
    ramp_up_start_rps: float | None
    ramp_up_end_rps: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetUp:
    """What was run, and under which load, with the key names of `vllm bench serve`."""

    metadata: Mapping[str, str] = field(metadata=FLAT)
    """Each `--metadata KEY=VALUE`, unless the summary has that key."""
    date: str
    endpoint_type: str
    backend: str
    label: str | None
    model_id: str | None
    tokenizer_id: str | None
    request_rate: float | None = field(metadata=RATE)
    burstiness: float | None = field(metadata=RATE)
    max_concurrency: int | None
    ramp: RampSummary | None = field(metadata=FLAT | OMITTED)
    goodput: tuple[str, ...] | None = field(metadata=OMITTED)
    """The objectives of `request_goodput`, as in `ttft:500` (milliseconds)."""
