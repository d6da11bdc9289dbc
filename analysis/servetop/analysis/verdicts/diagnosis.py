"""Diagnosis of what limits throughput now, with evidence and advice, by rules over the current statistics.

The first rule that applies decides. A rule with missing inputs does not apply; if none applies, the diagnosis names the
missing inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from servetop.analysis.engine_gauges import KV_FULL, KV_HIGH, KV_ROOMY, STALE_AFTER, kv_usage
from servetop.analysis.live_stats import LiveStats
from servetop.analysis.verdicts.trust import TrustVerdict
from servetop.core.arrays import FloatArray
from servetop.core.interfaces.run_source import EngineFacts

PREEMPTING = 0.05
"""Preemptions/s over the window that count as preempting; one in ten seconds may be random."""
BATCH_FULL = 0.97
"""Fraction of max_num_seqs that counts as full, because a slot is briefly empty between two requests."""
QUEUE_GROWS = 0.03
"""Minimum growth of the queue as a fraction of the offered rate; less may be noise of random arrivals."""
KEEPS_UP = 0.95
"""Minimum completed / offered rate at which the engine keeps up; requests in flight account for the rest."""
_BATCH_STEP = 8
"""Advised batch sizes are multiples of this."""
_SHORT_QUEUE = 2
"""Up to this many waiting requests are about to join the batch."""


class Bottleneck(StrEnum):
    """What limits throughput."""

    IDLE = "idle"
    CLIENT = "client-bound"
    KV = "KV-bound"
    BATCH = "batch-bound"
    CONCURRENCY = "concurrency-limited"
    QUEUE = "queue growing"
    HEADROOM = "headroom"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The bottleneck, its evidence and advice; `advice` is empty if there is nothing to do."""

    bottleneck: Bottleneck
    evidence: tuple[str, ...] = ()
    advice: str = ""

    @property
    def line(self) -> str:
        """The diagnosis in one line, such as `KV-bound: 99.7 % of blocks, 4.0 preemptions/s → more KV memory`."""
        verdict = f"{self.bottleneck.value}: {', '.join(self.evidence)}" if self.evidence else self.bottleneck.value
        return f"{verdict} → {self.advice}" if self.advice else verdict


def diagnose(stats: LiveStats, facts: EngineFacts | None) -> Diagnosis:
    """Diagnose the statistics, which include the previous stage for a while after a stage change."""
    engine = _EngineState.of(stats, facts)
    if not stats.rates.offered > 0 and stats.load.in_flight == 0:
        return Diagnosis(bottleneck=Bottleneck.IDLE)
    for rule in (_client, _kv, _batch, _concurrency, _queue, _headroom):
        diagnosis = rule(stats, engine)
        if diagnosis is not None:
            return diagnosis
    return _unclear(stats, engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class _EngineState:
    """The engine's state at one time; NaN for unknown values."""

    age: float
    """Seconds since the newest sample."""
    growth: float
    """Growth of the engine's queue in requests/s; of the requests in flight if the queue is not exported."""
    kv: float = math.nan
    running: float = math.nan
    waiting: float = math.nan
    batch: float = math.nan

    @classmethod
    def of(cls, stats: LiveStats, facts: EngineFacts | None) -> _EngineState:
        """Return the state from the newest sample, unless it is stale, and the series within the window."""
        sample = stats.engine
        age = math.nan if sample is None else stats.at - sample.scrape_end
        recent = stats.series.times > stats.at - stats.window
        if sample is None or age > STALE_AFTER:
            return cls(age=age, growth=_slope(stats.series.times[recent], stats.series.in_flight[recent]))
        queue = stats.series.in_flight if sample.waiting is None else stats.series.waiting
        at_startup = None if facts is None else facts.max_num_seqs
        batch = at_startup if sample.max_num_seqs is None else sample.max_num_seqs
        return cls(
            kv=kv_usage(sample), running=_number(sample.running), waiting=_number(sample.waiting),
            batch=_number(batch), growth=_slope(stats.series.times[recent], queue[recent]), age=age,
        )  # fmt: skip

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the unknown values."""
        values = {"KV usage": self.kv, "running": self.running, "waiting": self.waiting, "batch size": self.batch}
        return tuple(name for name, value in values.items() if math.isnan(value))

    @property
    def fitting(self) -> int:
        """Number of sequences of the current mean length that fill the KV blocks to `KV_HIGH`; 0 if unknown."""
        if not (self.kv > 0 and self.running > 0):
            return 0
        return int(self.running * KV_HIGH / self.kv) // _BATCH_STEP * _BATCH_STEP


def _client(stats: LiveStats, engine: _EngineState) -> Diagnosis | None:  # noqa: ARG001
    if stats.trust.verdict is not TrustVerdict.CLIENT_BOUND:
        return None
    advice = "the figures describe the client: lower the rate, or give the client more CPU"
    return Diagnosis(bottleneck=Bottleneck.CLIENT, evidence=stats.trust.reasons, advice=advice)


def _kv(stats: LiveStats, engine: _EngineState) -> Diagnosis | None:
    preempting = stats.rates.preemptions > PREEMPTING
    if not engine.kv >= KV_FULL or not (preempting or engine.waiting > _SHORT_QUEUE):
        return None
    rate = (f"{stats.rates.preemptions:.1f} preemptions/s",) if preempting else ()
    waiting = (f"{engine.waiting:.0f} waiting",) if engine.waiting > _SHORT_QUEUE else ()
    smaller = preempting and engine.fitting > 0 and not engine.fitting >= engine.batch
    advice = f"max_num_seqs ≈ {engine.fitting} or more KV memory" if smaller else "more KV memory, or shorter requests"
    return Diagnosis(
        bottleneck=Bottleneck.KV, evidence=(f"{_percent(engine.kv)} of blocks", *rate, *waiting), advice=advice
    )


def _batch(stats: LiveStats, engine: _EngineState) -> Diagnosis | None:  # noqa: ARG001
    if not engine.running >= BATCH_FULL * engine.batch or not engine.waiting > _SHORT_QUEUE:
        return None
    roomy = engine.kv < KV_ROOMY
    memory = "" if math.isnan(engine.kv) else f"KV {'only ' if roomy else ''}{_percent(engine.kv)}"
    increase = (
        f"raise max_num_seqs, to ≈ {engine.fitting}"
        if roomy and engine.fitting > engine.batch
        else "raise max_num_seqs"
    )
    advice = increase if roomy or not memory else "lower the rate: a larger batch would soon fill the KV blocks"
    evidence = (f"running {engine.running:.0f} of {engine.batch:.0f}", f"{engine.waiting:.0f} waiting", memory)
    return Diagnosis(bottleneck=Bottleneck.BATCH, evidence=tuple(filter(None, evidence)), advice=advice)


def _concurrency(stats: LiveStats, engine: _EngineState) -> Diagnosis | None:
    limit = stats.load.max_concurrency
    if limit is None or not stats.load.queued or engine.waiting > _SHORT_QUEUE:
        return None
    evidence = (f"{stats.load.queued} requests queued at the client, limit {limit} in flight",)
    return Diagnosis(bottleneck=Bottleneck.CONCURRENCY, evidence=evidence, advice="raise the concurrency limit")


def _queue(stats: LiveStats, engine: _EngineState) -> Diagnosis | None:
    if not engine.growth > QUEUE_GROWS * stats.rates.offered or _keeps_up(stats):
        return None
    waiting = "" if math.isnan(engine.waiting) else f"{engine.waiting:.0f} waiting"
    done = f"done {stats.rates.completed:.1f} of {stats.rates.offered:.1f} req/s"
    unknown = f"cause unknown without {', '.join(engine.missing)}" if engine.missing else ""
    evidence = tuple(filter(None, (f"+{engine.growth:.1f} requests/s", waiting, done, unknown)))
    return Diagnosis(
        bottleneck=Bottleneck.QUEUE, evidence=evidence, advice=f"lower the rate below {stats.rates.completed:.1f}"
    )


def _headroom(stats: LiveStats, engine: _EngineState) -> Diagnosis | None:
    if not _keeps_up(stats) or not engine.waiting <= max(_SHORT_QUEUE, stats.rates.offered):
        return None
    done = f"done {stats.rates.completed:.1f} of {stats.rates.offered:.1f} req/s"
    memory = "" if math.isnan(engine.kv) else f"KV {_percent(engine.kv)}"
    preempts = stats.rates.preemptions > PREEMPTING
    preempting = f"{stats.rates.preemptions:.1f} preemptions/s" if preempts else ""
    evidence = tuple(filter(None, ("the engine keeps up", done, memory, preempting)))
    closed = stats.load.max_concurrency is not None and math.isinf(stats.load.request_rate or 0.0)
    increase = "raise the concurrency limit" if closed else "raise the rate"
    advice = "more KV memory: some requests are computed twice" if preempts else increase
    return Diagnosis(bottleneck=Bottleneck.HEADROOM, evidence=evidence, advice=advice)


def _unclear(stats: LiveStats, engine: _EngineState) -> Diagnosis:
    if engine.age > STALE_AFTER:
        evidence = f"the engine's newest sample is {engine.age:.1f} s old"
    elif engine.missing:
        evidence = f"{', '.join(engine.missing)} not known"
    else:
        evidence = f"nothing is at its limit, yet done {stats.rates.completed:.1f} of {stats.rates.offered:.1f} req/s"
    advice = "" if engine.missing else "hold this stage until it is steady"
    return Diagnosis(bottleneck=Bottleneck.UNCLEAR, evidence=(evidence,), advice=advice)


def _keeps_up(stats: LiveStats) -> bool:
    return stats.rates.completed >= KEEPS_UP * stats.rates.offered


def _slope(times: FloatArray, values: FloatArray) -> float:
    """Return the least-squares slope per second; NaN for fewer than three known values."""
    known = ~np.isnan(values)
    if np.count_nonzero(known) < 3:
        return math.nan
    centered = times[known] - times[known].mean()
    return float(np.dot(centered, values[known]) / np.dot(centered, centered))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _percent(share: float) -> str:
    """Format with one decimal, rounded down, so that `100.0 %` means all."""
    return f"{math.floor(share * 1000) / 10:.1f} %"
