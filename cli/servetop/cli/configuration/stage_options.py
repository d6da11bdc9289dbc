"""Builds the stages of a run from its options, and rejects a load that would never end or cannot be sent."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from servetop.cli.options.load_options import LoadOptions
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.plain_workload import is_plain

if TYPE_CHECKING:
    from servetop.workload.validation import Replay

DEFAULT_DURATION = 60.0
WARMUP_CONCURRENCY = 8
"""Warm-up requests in flight where no limit was given."""


def stages_of(load: LoadOptions, replay: Replay | None = None) -> tuple[StageConfig, ...]:
    """Return the stages of --ramp, or one stage; without any load option, a whole trace, or the default ramp."""
    from servetop.workload.stages.ramp import default_ramp, parse_ramp

    if load.ramp is not None:
        if _has_rate_or_end(load):
            raise UsageError("--ramp sets rates and durations: leave out --request-rate, --num-prompts and --duration")
        if load.ramp_up_start_rps is not None or load.ramp_up_end_rps is not None:
            raise UsageError("--ramp sets rates: leave out --ramp-up-start-rps and --ramp-up-end-rps")
        return parse_ramp(load.ramp, max_concurrency=load.max_concurrency, strategy=load.ramp_up_strategy)
    if replay is None and not describes_load(load):
        return default_ramp()
    stage = StageConfig(max_concurrency=load.max_concurrency, duration=load.duration, num_prompts=load.num_prompts)
    if _is_ramped(load):
        stage = _ramped(stage, load)
    elif load.request_rate is not None:
        stage = dataclasses.replace(stage, request_rate=load.request_rate)
    elif replay is not None:
        stage = dataclasses.replace(stage, request_rate=replay.rate)
    elif load.duration is not None and load.num_prompts is None and load.max_concurrency is None:
        raise UsageError(f"--duration {load.duration:g} sets no rate: add --request-rate or --max-concurrency")
    return (with_an_end(stage, replay),)


def describes_load(load: LoadOptions) -> bool:
    """Whether any option sets the stages."""
    given = (load.ramp, load.max_concurrency, load.ramp_up_start_rps, load.ramp_up_end_rps, load.ramp_up_strategy)
    return _has_rate_or_end(load) or any(value is not None for value in given)


def _has_rate_or_end(load: LoadOptions) -> bool:
    return any(value is not None for value in (load.request_rate, load.num_prompts, load.duration))


def _is_ramped(load: LoadOptions) -> bool:
    """Whether any --ramp-up option is given."""
    given = (load.ramp_up_start_rps, load.ramp_up_end_rps, load.ramp_up_strategy)
    return any(value is not None for value in given)


def _ramped(stage: StageConfig, load: LoadOptions) -> StageConfig:
    """Return the stage with the rates of the --ramp-up options."""
    if load.ramp_up_start_rps is None or load.ramp_up_end_rps is None:
        raise UsageError("a ramp needs two rates: give --ramp-up-start-rps and --ramp-up-end-rps")
    if load.request_rate is not None:
        raise UsageError("--ramp-up-start-rps and --ramp-up-end-rps set the rate: leave out --request-rate")
    return dataclasses.replace(
        stage,
        ramp_from=load.ramp_up_start_rps,
        request_rate=load.ramp_up_end_rps,
        ramp_strategy=load.ramp_up_strategy or "linear",
    )


def with_an_end(stage: StageConfig, replay: Replay | None = None) -> StageConfig:
    """Return the stage with an end: a whole trace, or 60 s, where none was given; UsageError for an unlimited rate."""
    if replay is not None and stage.duration is None and stage.num_prompts is None:
        stage = dataclasses.replace(stage, num_prompts=replay.requests)
    if math.isinf(stage.request_rate) and stage.max_concurrency is None and stage.num_prompts is None:
        raise UsageError("an infinite request rate needs a limit: give --max-concurrency or --num-prompts")
    if stage.duration is None and stage.num_prompts is None:
        return dataclasses.replace(stage, duration=DEFAULT_DURATION)
    return stage


def with_warmup(stages: Sequence[StageConfig], count: int, *, each_repeat: bool = False) -> tuple[StageConfig, ...]:
    """Return the stages after a warm-up stage, with `each_repeat` one at each change of the repeat."""
    if not count:
        return tuple(stages)
    found: list[StageConfig] = []
    for number, stage in enumerate(stages):
        if not number or (each_repeat and stage.repeat != stages[number - 1].repeat):
            found.append(_warmup(stage, count))
        found.append(stage)
    return tuple(found)


def _warmup(first: StageConfig, count: int) -> StageConfig:
    """Return a warm-up with the batch size and concurrency of the stage that follows."""
    return StageConfig(
        max_concurrency=first.max_concurrency or WARMUP_CONCURRENCY,
        max_num_seqs=first.max_num_seqs,
        num_prompts=count,
        repeat=first.repeat,
        warmup=True,
        settings=first.settings,
    )


def check_cooldown(seconds: float, stages: Sequence[StageConfig]) -> None:
    """UsageError for a --cooldown that would leave nothing of a stage, as far as that is known beforehand."""
    if not seconds:
        return
    for stage in stages:
        if stage.warmup:
            continue
        if math.isinf(stage.request_rate) and stage.max_concurrency is None:
            raise UsageError("--cooldown needs a rate, but all requests are sent at once: add --request-rate")
        if stage.duration is not None and seconds >= stage.duration:
            raise UsageError(
                f"--cooldown {seconds:g} s leaves nothing of a stage of {stage.duration:g} s: use a shorter cooldown"
            )


def check(workload: WorkloadConfig, stages: Sequence[StageConfig]) -> None:
    """UsageError for a load that cannot be sent, before anything starts."""
    if not stages or not is_plain(workload) or any(stage.ramp_from is not None for stage in stages):
        from servetop.workload.validation import check_load  # numpy: not for every start

        check_load(workload, stages)
    from servetop.workload.stages.plan import check_stage

    for index, stage in enumerate(stages):
        check_stage(index, stage)
