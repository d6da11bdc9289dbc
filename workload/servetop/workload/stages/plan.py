"""The load plan: stages with an absolute start time, and the phases of running it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.core.units import MAX_REQUEST_RATE
from servetop.workload.stages.stage_draws import StageDraws

RAMP_STRATEGIES = ("linear", "exponential")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """What the requests depend on in an engine that was started with other settings."""

    model: str
    """Model name sent with each request."""
    max_model_len: int | None = None
    """Longest context in tokens, if the engine reports it."""
    token_ids: tuple[int, ...] = ()
    """Ordinary tokens of the model in ascending order; empty: unknown."""
    block_size: int | None = None
    """Tokens of a KV block, if the engine reports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """Consecutive stages with an absolute start time; UsageError for a stage that cannot run."""

    segments: tuple[tuple[int, StageConfig], ...]
    """The stages, each with its index in the run."""
    begin: float
    """Run time at which the first stage starts; a past time starts it immediately."""
    draws: Mapping[int, StageDraws] = field(default_factory=dict)
    """Seeds of the stages by index."""
    drain_at_stages: bool = False
    """Wait between stages until no request is in flight or queued at the client."""
    drain_timeout: float = 120.0
    """Longest drain in seconds; requests left after it are cancelled."""
    followed_by: int = 0
    """Stages after this plan that start when all senders have finished it."""
    prompt_salt: int | None = None
    """Alters the beginning of each prompt, so that no cache has it from an earlier plan; None: prompts as they are."""
    served: ServedModel | None = None
    """That of the engine, if it restarted with other settings; None: that of the set-up."""
    first_number: int | None = None
    """First request number, to realign several senders; None: continue."""

    def __post_init__(self) -> None:
        if not self.segments:
            raise UsageError("the load has no stages: give --request-rate, --max-concurrency or --ramp")
        for index, stage in self.segments:
            check_stage(index, stage)

    def draws_of(self, index: int) -> StageDraws:
        """Return the draws of a stage; without given ones its due times depend on its index alone."""
        return self.draws.get(index) or StageDraws(arrivals=(0, index))


class LoadPhase(StrEnum):
    """Progress of a load plan."""

    IDLE = "idle"
    """No plan has started."""
    RUNNING = "running"
    DRAINING = "draining"
    """All requests were sent; waiting for responses in flight."""
    FINISHED = "finished"
    """All requests of the plan have ended; another plan may start."""


def check_stage(index: int, stage: StageConfig) -> None:
    """Raise UsageError for a stage that sends nothing, has no end where it needs one, or is out of range."""
    rate, where = stage.request_rate, f"stage {index + 1}"
    if not rate > 0:
        raise UsageError(f"{where}: a request rate of {rate:g} sends nothing: give requests per second above 0, or inf")
    if not math.isinf(rate) and rate > MAX_REQUEST_RATE:
        raise UsageError(f"{where}: {rate:g} requests/s is too high: give at most {MAX_REQUEST_RATE:,.0f}")
    if stage.ramp_from is not None:
        _check_ramp(where, stage)
    bounds = {
        "concurrency": stage.max_concurrency,
        "duration": stage.duration,
        "number of prompts": stage.num_prompts,
    }
    for name, value in bounds.items():
        if value is not None and not value > 0:
            raise UsageError(f"{where}: a {name} of {value:g} sends nothing: give one above 0")
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
