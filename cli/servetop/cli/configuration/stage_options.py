"""The stages of a run from its options; what would never end, or could not be played, is refused."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from servetop.cli.configuration.workload_settings import Options
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.units import parse_rate, parse_seconds
from servetop.workload.plain_workload import is_plain

if TYPE_CHECKING:
    from servetop.workload.validation import Replay

DEFAULT_DURATION = 60.0
MOST_WORKERS = 64
WARMUP_CONCURRENCY = 8
"""Warm-up requests in flight where no limit was given."""
_SINGLE = {"request_rate": "--request-rate", "num_prompts": "--num-prompts", "duration": "--duration"}


def parse_workers(text: str) -> int:
    """A number of senders, or 0 for `auto`; UsageError for anything else."""
    if text.strip().lower() == "auto":
        return 0
    if not text.strip().isdecimal() or not 1 <= int(text) <= MOST_WORKERS:
        raise UsageError(f"--workers {text}: give 1 to {MOST_WORKERS} sender processes, or auto")
    return int(text)


def stages_of(options: Options, replay: Replay | None = None) -> tuple[StageConfig, ...]:
    """The stages of --ramp, or one stage; when nothing was said about the load, all of a trace, or the default ramp."""
    from servetop.workload.stages import default_ramp, parse_ramp

    ramp_up = ramp_of(options)
    given = [flag for name, flag in _SINGLE.items() if options[name] is not None]
    concurrency = options["max_concurrency"]
    if options["ramp"] is not None:
        if given or ramp_up:
            raise UsageError("--ramp sets rates and durations: leave out --request-rate, --num-prompts and --duration")
        return parse_ramp(options["ramp"], max_concurrency=concurrency, strategy=options["ramp_up_strategy"])
    if not given and not ramp_up and concurrency is None and replay is None:
        return default_ramp()
    if replay is not None and not ramp_up and options["request_rate"] is None:
        ramp_up = {"request_rate": replay.rate}
    duration = None if options["duration"] is None else parse_seconds(options["duration"])
    if given == [_SINGLE["duration"]] and not ramp_up and concurrency is None and replay is None:
        raise UsageError(
            f"--duration {options['duration']} says how long, not how fast: give --request-rate or --max-concurrency"
        )
    stage = StageConfig(
        max_concurrency=concurrency,
        duration=duration,
        num_prompts=options["num_prompts"],
        **(ramp_up or {"request_rate": parse_rate(options["request_rate"] or "inf")}),
    )
    return (with_an_end(stage, replay),)


def says_load(options: Options) -> bool:
    """Any option says what the stages are."""
    names = (*_SINGLE, "ramp", "max_concurrency", "ramp_up_start_rps", "ramp_up_end_rps", "ramp_up_strategy")
    return any(options[name] is not None for name in names)


def ramp_of(options: Options) -> dict[str, Any]:
    """What --ramp-up-… says of a stage; empty when nothing was said."""
    names = ("ramp_up_start_rps", "ramp_up_end_rps")
    if options["ramp"] is not None or not any(options[name] for name in (*names, "ramp_up_strategy")):
        return {}
    if not all(options[name] for name in names):
        raise UsageError("a ramp goes from one rate to another: give --ramp-up-start-rps and --ramp-up-end-rps")
    if options["request_rate"] is not None:
        raise UsageError("--ramp-up-start-rps and --ramp-up-end-rps set the rate: leave out --request-rate")
    start, end = (parse_rate(options[name]) for name in names)
    return {"ramp_from": start, "request_rate": end, "ramp_strategy": options["ramp_up_strategy"] or "linear"}


def with_an_end(stage: StageConfig, replay: Replay | None = None) -> StageConfig:
    """Refuse what would never end or would flood the client; a whole trace, or 60 s, where only a load was named."""
    if replay is not None and stage.duration is None and stage.num_prompts is None:
        stage = dataclasses.replace(stage, num_prompts=replay.requests)
    if math.isinf(stage.request_rate) and stage.max_concurrency is None and stage.num_prompts is None:
        raise UsageError("an infinite request rate needs a limit: give --max-concurrency or --num-prompts")
    if stage.duration is None and stage.num_prompts is None:
        return dataclasses.replace(stage, duration=DEFAULT_DURATION)
    return stage


def with_warmup(stages: Sequence[StageConfig], count: int) -> tuple[StageConfig, ...]:
    """The stages with a warm-up in front, under the first one's batch size and concurrency."""
    if not count or not stages:
        return tuple(stages)
    first = stages[0]
    warmup = StageConfig(
        max_concurrency=first.max_concurrency or WARMUP_CONCURRENCY,
        max_num_seqs=first.max_num_seqs,
        num_prompts=count,
        warmup=True,
    )
    return (warmup, *stages)


def checked_cooldown(text: str | None, stages: Sequence[StageConfig]) -> float:
    """Seconds of --cooldown; UsageError when it would leave nothing of a stage, as far as that is known beforehand."""
    if text is None or text == "0":
        return 0.0
    try:
        seconds = parse_seconds(text)
    except UsageError as wrong:
        raise UsageError(f"--cooldown: {wrong}") from None
    for stage in stages:
        if stage.warmup:
            continue
        if math.isinf(stage.request_rate) and stage.max_concurrency is None:
            raise UsageError("--cooldown: requests that are sent all at once have no last part: give --request-rate")
        if stage.duration is not None and seconds >= stage.duration:
            raise UsageError(
                f"--cooldown {seconds:g} s leaves nothing of {stage.duration:g} s: give less, or more load"
            )
    return seconds


def check(workload: WorkloadConfig, stages: Sequence[StageConfig]) -> None:
    """UsageError for stages that could not be played, before anything starts."""
    if not stages or not is_plain(workload) or any(stage.ramp_from is not None for stage in stages):
        from servetop.workload.validation import check_load  # numpy: not for every start

        check_load(workload, stages)
    from servetop.workload.plan import check_stage

    for index, stage in enumerate(stages):
        check_stage(index, stage)
