"""The load plan: stages with their absolute start, and the phases that playing it goes through."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.core.units import MAX_REQUEST_RATE

RAMP_STRATEGIES = ("linear", "exponential")


class LoadPhase(StrEnum):
    """How far the load has got."""

    IDLE = "idle"
    """No plan has been given yet."""
    RUNNING = "running"
    DRAINING = "draining"
    """No further request is due; responses in flight are awaited."""
    FINISHED = "finished"
    """Every request of the plan has ended; another plan may begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """Stages that follow each other, by absolute times; UsageError when one of them could not be played."""

    segments: tuple[tuple[int, StageConfig], ...]
    """Each stage with its index in the run."""
    begin: float
    """Run time at which the first stage begins; in the past: at once."""
    drain_at_stages: bool = False
    """Between stages, wait until nothing is in flight or held back."""
    drain_timeout: float = 120.0
    """Seconds that draining may take; then what is left is cancelled."""
    followed_by: int = 0
    """Stages that whoever gives the plans keeps back until this one has been played by all senders."""
    first_number: int | None = None
    """Where several senders count their requests from, to be in step again; None: from where they are."""

    def __post_init__(self) -> None:
        if not self.segments:
            raise UsageError("the load has no stages: give --request-rate, --max-concurrency or --ramp")
        for index, stage in self.segments:
            check_stage(index, stage)


def check_stage(index: int, stage: StageConfig) -> None:
    """UsageError for a stage that sends nothing, has no bound where it needs one, or asks for the impossible."""
    rate, where = stage.request_rate, f"stage {index + 1}"
    if not rate > 0:
        raise UsageError(f"{where}: a request rate of {rate:g} sends nothing: give requests per second above 0, or inf")
    if not math.isinf(rate) and rate > MAX_REQUEST_RATE:
        raise UsageError(f"{where}: {rate:g} requests/s is too much: stay at or below {MAX_REQUEST_RATE:,.0f}")
    if stage.ramp_from is not None:
        _check_ramp(where, stage)
    bounds = {
        "concurrency": stage.max_concurrency,
        "duration": stage.duration,
        "number of prompts": stage.num_prompts,
    }
    for name, value in bounds.items():
        if value is not None and not value > 0:
            raise UsageError(f"{where}: a {name} of {value:g} makes no load: give one above 0")
    if math.isinf(rate) and stage.max_concurrency is None and stage.num_prompts is None:
        raise UsageError(f"{where}: an infinite rate needs --max-concurrency or --num-prompts")


def _check_ramp(where: str, stage: StageConfig) -> None:
    start = stage.ramp_from or 0.0
    if stage.ramp_strategy not in RAMP_STRATEGIES:
        raise UsageError(f"{where}: unknown ramp strategy {stage.ramp_strategy!r}: give {' or '.join(RAMP_STRATEGIES)}")
    if not (0 < start <= MAX_REQUEST_RATE) or math.isinf(stage.request_rate):
        raise UsageError(f"{where}: a ramp goes from one request rate above 0 to another: give both in requests/s")
    if stage.duration is None and stage.num_prompts is None:
        raise UsageError(f"{where}: a ramp needs an end: give --duration or --num-prompts")
