"""Overloads: episodes that belong together because one limit of the engine caused them, and that limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from servetop.analysis.engine_gauges import KV_FULL, kv_usages
from servetop.analysis.judgement.detectors import BATCH_FULL
from servetop.analysis.judgement.episode import Episode, EpisodeKind
from servetop.analysis.judgement.signals import ticks_of, trailing_sum
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.interfaces.run_source import EngineFacts

_OVERLOAD = (EpisodeKind.KV, EpisodeKind.PREEMPTIONS, EpisodeKind.BATCH, EpisodeKind.QUEUE)
_JOINED_WITHIN = 10.0
"""Seconds between two episodes of one overload."""
_LONGER = 2.0
"""Prompts are long if their mean is at least this multiple of the mean before."""
_FASTER = 1.3
"""Up to this multiple of the earlier rate of requests, long prompts explain an overload."""
_MIN_PROMPTS = 10
SETTLED_AFTER = 60.0
"""Seconds of an overload, and before it, whose prompts are compared."""
_SHARE = 0.5
"""Minimum fraction of the time with waiting requests for which something must be full, to be their limit."""


class Limit(StrEnum):
    """What the engine ran out of."""

    KV = "KV-bound"
    BATCH = "batch-bound"
    RATE = "rate above capacity"
    LONG_PROMPTS = "long prompts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """Episodes that overlap or follow each other closely, by their beginning."""

    episodes: tuple[Episode, ...]

    @property
    def begin(self) -> float:
        """The earliest beginning, seconds."""
        return min(episode.begin for episode in self.episodes)

    @property
    def end(self) -> float | None:
        """The latest end, seconds; None while one lasts."""
        ends = [episode.end for episode in self.episodes]
        return None if None in ends else max(end for end in ends if end is not None)

    def first(self, kind: EpisodeKind) -> Episode | None:
        """The first episode of a kind; None if there is none."""
        return next((episode for episode in self.episodes if episode.kind is kind), None)

    def total(self, kind: EpisodeKind) -> float:
        """The sum of the totals of a kind."""
        return sum(episode.total for episode in self.episodes if episode.kind is kind)

    def seconds(self, kind: EpisodeKind, until: float) -> float:
        """The sum of the lengths of a kind, in seconds."""
        return sum(episode.seconds(until) for episode in self.episodes if episode.kind is kind)

    def worst(self, kind: EpisodeKind) -> Episode | None:
        """The episode of a kind with the worst value; None if there is none."""
        of_kind = [episode for episode in self.episodes if episode.kind is kind]
        return max(of_kind, key=lambda episode: episode.worst, default=None)


def overloads(episodes: Sequence[Episode]) -> list[Overload]:
    """Group the episodes of full caches and batches, preemptions and queues, in order of time."""
    groups: list[list[Episode]] = []
    until = -math.inf
    for episode in sorted(episodes, key=lambda each: each.begin):
        if episode.kind not in _OVERLOAD:
            continue
        if not groups or episode.begin > until + _JOINED_WITHIN:
            groups.append([])
            until = -math.inf
        groups[-1].append(episode)
        until = max(until, math.inf if episode.end is None else episode.end)
    return [Overload(episodes=tuple(group)) for group in groups]


def limit_of(overload: Overload, run: TickHistory, facts: EngineFacts | None, *, until: float, longer: bool) -> Limit:
    """Return the limit that kept requests waiting for most of the time of an overload, as known at `until` seconds.

    `longer`: whether its prompts are longer than before.
    """
    if longer:
        return Limit.LONG_PROMPTS
    kv, batch = overload.first(EpisodeKind.KV), overload.first(EpisodeKind.BATCH)
    if overload.first(EpisodeKind.QUEUE) is None:  # a closed loop, or the beginning of a queue
        return Limit.BATCH if kv is None and batch is not None else Limit.KV
    waited, at_full_kv, at_full_batch = _waiting_ticks(overload, run, facts, until)
    if (kv is not None or overload.first(EpisodeKind.PREEMPTIONS)) and at_full_kv >= max(
        at_full_batch, _SHARE * waited
    ):
        return Limit.KV
    return Limit.BATCH if batch is not None and at_full_batch >= _SHARE * waited else Limit.RATE


def _waiting_ticks(
    overload: Overload, run: TickHistory, facts: EngineFacts | None, until: float
) -> tuple[int, int, int]:
    """Return the ticks with waiting requests: all, those with a full cache or preemptions, those with a full batch."""
    end = until if overload.end is None else min(overload.end, until)
    start = run.first_from(overload.begin)
    stop = max(start, run.up_to(end))
    names = ("waiting", "running", "preemptions", "kv_usage", "kv_blocks_used")
    waiting, running, preempted, usage, used = (run.column(name, start=start, stop=stop) for name in names)
    blocks = math.nan if facts is None or not facts.kv_blocks_total else float(facts.kv_blocks_total)
    level = next((each.level for each in overload.episodes if each.kind is EpisodeKind.KV), KV_FULL)
    size = next((each.batch for each in overload.episodes if not math.isnan(each.batch)), math.nan)
    waits = waiting > 0
    full = (kv_usages(usage, used, np.full(used.shape, blocks)) >= level) | (trailing_sum(preempted, ticks_of(2)) > 0)
    counts = (waits, waits & full, waits & (running >= BATCH_FULL * size))
    waited, at_full_kv, at_full_batch = (int(each.sum()) for each in counts)
    return waited, at_full_kv, at_full_batch


def prompts_are_longer(overload: Overload, history: TickHistory, until: float) -> bool:
    """Whether the prompts of its first minute are longer than before although requests do not come faster."""
    start = overload.begin
    end = min(start + SETTLED_AFTER, until, math.inf if overload.end is None else overload.end)
    before, during = _Arrivals.between(history, start - SETTLED_AFTER, start), _Arrivals.between(history, start, end)
    if before.prompts < _MIN_PROMPTS or during.prompts < _MIN_PROMPTS:
        return False
    return during.mean_prompt >= _LONGER * before.mean_prompt and during.rate <= _FASTER * before.rate


def long_prompts_since(overload: Overload, history: TickHistory) -> float:
    """Return when the first long prompt was due, from its first token; at the latest the overload's beginning."""
    before = _Arrivals.between(history, overload.begin - SETTLED_AFTER, overload.begin - _JOINED_WITHIN).mean_prompt
    end = min(overload.begin + SETTLED_AFTER, math.inf if overload.end is None else overload.end)
    for tick in history.ticks[history.first_from(overload.begin - _JOINED_WITHIN) : history.up_to(end)]:
        count = tick.client.ttft.count
        if count and tick.client.prompt_tokens > _LONGER * before * count:
            return min(overload.begin, tick.end - tick.client.ttft_due.percentile(100))
    return overload.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrivals:
    """The requests of a period: due per second, and the mean prompt of those whose first token arrived."""

    rate: float
    prompts: int
    mean_prompt: float

    @classmethod
    def between(cls, history: TickHistory, start: float, until: float) -> _Arrivals:
        first, stop = history.first_from(start), history.up_to(until)
        if stop <= first:
            return cls(rate=math.nan, prompts=0, mean_prompt=math.nan)
        due = history.column("due", start=first, stop=stop)
        loaded = due.size - int((due > 0).argmax()) if due.any() else due.size
        prompts = history.histogram("ttft", start=first, stop=stop).count
        tokens = float(history.column("prompt_tokens", start=first, stop=stop).sum())
        return cls(
            rate=float(due.sum()) / loaded,
            prompts=prompts,
            mean_prompt=tokens / prompts if prompts else math.nan,
        )
