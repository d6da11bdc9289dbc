"""What limits throughput now, and what to try: rules over the statistics of one instant, each with its evidence.

The first rule that applies speaks. A rule whose figures are missing is silent; when none can speak, what is missing is
named.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from servetop.analysis.live_stats import LiveStats
from servetop.analysis.verdicts.trust import TrustVerdict
from servetop.core.arrays import FloatArray
from servetop.core.events import EngineSample
from servetop.core.interfaces.run_source import EngineFacts

KV_FULL = 0.95
"""Share of KV blocks; engines keep a few per cent free for running requests to grow (vLLM's watermark is 1 %)."""
KV_ROOMY = 0.80
"""Below this share more sequences would fit without preempting."""
KV_AIM = 0.90
"""Share that advice on the batch size aims at: full use, with room for outputs longer than the mean."""
PREEMPTING = 0.05
"""Preemptions/s over the window: one in ten seconds is chance, more is a pattern."""
BATCH_FULL = 0.97
"""Share of max_num_seqs; places are empty for part of an iteration between one request and the next."""
QUEUE_GROWS = 0.03
"""Growth of the queue as a share of the offered rate; less is the noise of random arrivals over some seconds."""
KEEPS_UP = 0.95
"""Completed / offered; requests in flight explain the rest."""
STALE_AFTER = 1.5
"""Seconds; an older engine sample says nothing of now."""
_BATCH_STEP = 8
"""Batch sizes are advised in multiples of this."""
_SHORT_QUEUE = 2
"""So few waiting requests are on their way into the batch."""


class Limit(StrEnum):
    """What throughput is bound by."""

    IDLE = "no load"
    CLIENT = "client-bound"
    KV = "KV-bound"
    BATCH = "batch-bound"
    CONCURRENCY = "concurrency-bound"
    QUEUE = "queue grows"
    LOAD = "load-bound"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The limit, the figures that say so, and what to try; `advice` is empty where there is nothing to do."""

    limit: Limit
    evidence: tuple[str, ...] = ()
    advice: str = ""

    @property
    def line(self) -> str:
        """`KV-bound: 99.7 % of blocks, 4.0 preemptions/s → more KV memory`."""
        said = f"{self.limit.value}: {', '.join(self.evidence)}" if self.evidence else self.limit.value
        return f"{said} → {self.advice}" if self.advice else said


def diagnose(stats: LiveStats, facts: EngineFacts | None) -> Diagnosis:
    """The diagnosis of one instant; a stage that has just begun shows the window's past until the window has passed."""
    signs = _EngineState.of(stats, facts)
    if not stats.rates.offered > 0 and stats.load.in_flight == 0:
        return Diagnosis(limit=Limit.IDLE)
    for rule in (_client, _kv, _batch, _concurrency, _queue, _load):
        found = rule(stats, signs)
        if found is not None:
            return found
    return _inconclusive(stats, signs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _EngineState:
    """Figures of the engine; NaN is unknown."""

    kv: float = math.nan
    running: float = math.nan
    waiting: float = math.nan
    batch: float = math.nan
    growth: float = math.nan
    """Requests/s by which the queue grows: the engine's, or, where it tells none, what is in flight."""
    age: float = math.nan

    @classmethod
    def of(cls, stats: LiveStats, facts: EngineFacts | None) -> _EngineState:
        """From the newest sample unless it is stale, and the window's end of the series."""
        sample = stats.engine
        age = math.nan if sample is None else stats.at - sample.scrape_end
        recent = stats.series.times > stats.at - stats.window
        if sample is None or age > STALE_AFTER:
            return cls(age=age, growth=_slope(stats.series.times[recent], stats.series.in_flight[recent]))
        queue = stats.series.in_flight if sample.waiting is None else stats.series.waiting
        booted = None if facts is None else facts.max_num_seqs
        batch = booted if sample.max_num_seqs is None else sample.max_num_seqs
        return cls(
            kv=_kv_share(sample), running=_number(sample.running), waiting=_number(sample.waiting),
            batch=_number(batch), growth=_slope(stats.series.times[recent], queue[recent]), age=age,
        )  # fmt: skip

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of what is not known."""
        values = {"KV usage": self.kv, "running": self.running, "waiting": self.waiting, "batch size": self.batch}
        return tuple(name for name, value in values.items() if math.isnan(value))

    @property
    def fitting(self) -> int:
        """Sequences of the present mean length that fill the KV blocks to `KV_AIM`; 0 when it cannot be said."""
        if not (self.kv > 0 and self.running > 0):
            return 0
        return int(self.running * KV_AIM / self.kv) // _BATCH_STEP * _BATCH_STEP


def _client(stats: LiveStats, signs: _EngineState) -> Diagnosis | None:  # noqa: ARG001
    if stats.trust.verdict is not TrustVerdict.CLIENT_BOUND:
        return None
    advice = "the figures say more about the client: lower the rate, or give the client more processor"
    return Diagnosis(limit=Limit.CLIENT, evidence=stats.trust.reasons, advice=advice)


def _kv(stats: LiveStats, signs: _EngineState) -> Diagnosis | None:
    preempting = stats.rates.preemptions > PREEMPTING
    if not signs.kv >= KV_FULL or not (preempting or signs.waiting > _SHORT_QUEUE):
        return None
    rate = (f"{stats.rates.preemptions:.1f} preemptions/s",) if preempting else ()
    waits = (f"{signs.waiting:.0f} waiting",) if signs.waiting > _SHORT_QUEUE else ()
    smaller = preempting and signs.fitting > 0 and not signs.fitting >= signs.batch
    advice = f"max_num_seqs ≈ {signs.fitting} or more KV memory" if smaller else "more KV memory, or shorter requests"
    return Diagnosis(limit=Limit.KV, evidence=(f"{_percent(signs.kv)} of blocks", *rate, *waits), advice=advice)


def _batch(stats: LiveStats, signs: _EngineState) -> Diagnosis | None:  # noqa: ARG001
    if not signs.running >= BATCH_FULL * signs.batch or not signs.waiting > _SHORT_QUEUE:
        return None
    roomy = signs.kv < KV_ROOMY
    memory = "" if math.isnan(signs.kv) else f"KV {'only ' if roomy else ''}{_percent(signs.kv)}"
    room = (
        f"raise max_num_seqs, to ≈ {signs.fitting}" if roomy and signs.fitting > signs.batch else "raise max_num_seqs"
    )
    advice = room if roomy or not memory else "lower the rate: a larger batch would soon fill the KV blocks"
    evidence = (f"running {signs.running:.0f} of {signs.batch:.0f}", f"{signs.waiting:.0f} waiting", memory)
    return Diagnosis(limit=Limit.BATCH, evidence=tuple(filter(None, evidence)), advice=advice)


def _concurrency(stats: LiveStats, signs: _EngineState) -> Diagnosis | None:
    limit = stats.load.max_concurrency
    if limit is None or not stats.load.queued or signs.waiting > _SHORT_QUEUE:
        return None
    evidence = (f"{stats.load.queued} requests held back at {limit} in flight",)
    return Diagnosis(limit=Limit.CONCURRENCY, evidence=evidence, advice="raise the concurrency limit")


def _queue(stats: LiveStats, signs: _EngineState) -> Diagnosis | None:
    if not signs.growth > QUEUE_GROWS * stats.rates.offered or _keeps_up(stats):
        return None
    waiting = "" if math.isnan(signs.waiting) else f"{signs.waiting:.0f} waiting"
    done = f"done {stats.rates.completed:.1f} of {stats.rates.offered:.1f} req/s"
    unknown = f"why is unknown without {', '.join(signs.missing)}" if signs.missing else ""
    evidence = tuple(filter(None, (f"+{signs.growth:.1f} requests/s", waiting, done, unknown)))
    return Diagnosis(limit=Limit.QUEUE, evidence=evidence, advice=f"lower the rate below {stats.rates.completed:.1f}")


def _load(stats: LiveStats, signs: _EngineState) -> Diagnosis | None:
    if not _keeps_up(stats) or not signs.waiting <= max(_SHORT_QUEUE, stats.rates.offered):
        return None
    done = f"done {stats.rates.completed:.1f} of {stats.rates.offered:.1f} req/s"
    memory = "" if math.isnan(signs.kv) else f"KV {_percent(signs.kv)}"
    preempts = stats.rates.preemptions > PREEMPTING
    preempting = f"{stats.rates.preemptions:.1f} preemptions/s" if preempts else ""
    evidence = tuple(filter(None, ("the engine keeps up", done, memory, preempting)))
    closed = stats.load.max_concurrency is not None and math.isinf(stats.load.request_rate or 0.0)
    more = "raise the concurrency limit" if closed else "raise the rate"
    advice = "more KV memory: some requests are computed twice" if preempts else more
    return Diagnosis(limit=Limit.LOAD, evidence=evidence, advice=advice)


def _inconclusive(stats: LiveStats, signs: _EngineState) -> Diagnosis:
    if signs.age > STALE_AFTER:
        evidence = f"the engine's newest sample is {signs.age:.1f} s old"
    elif signs.missing:
        evidence = f"{', '.join(signs.missing)} not known"
    else:
        evidence = f"nothing is at its limit, yet done {stats.rates.completed:.1f} of {stats.rates.offered:.1f} req/s"
    settled = "" if signs.missing else "hold this stage until it is steady"
    return Diagnosis(limit=Limit.INCONCLUSIVE, evidence=(evidence,), advice=settled)


def _keeps_up(stats: LiveStats) -> bool:
    return stats.rates.completed >= KEEPS_UP * stats.rates.offered


def _kv_share(sample: EngineSample) -> float:
    if sample.kv_usage is None and sample.kv_blocks_used is not None and sample.kv_blocks_total:
        return sample.kv_blocks_used / sample.kv_blocks_total
    return _number(sample.kv_usage)


def _slope(times: FloatArray, values: FloatArray) -> float:
    """Per second, by least squares; NaN for fewer than three known values."""
    known = ~np.isnan(values)
    if np.count_nonzero(known) < 3:
        return math.nan
    moved = times[known] - times[known].mean()
    return float(np.dot(moved, values[known]) / np.dot(moved, moved))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _percent(share: float) -> str:
    """Never `100.0 %` for less than all."""
    return f"{math.floor(share * 1000) / 10:.1f} %"
