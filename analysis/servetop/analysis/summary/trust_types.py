"""The trust meter in a summary: its verdict, the values behind it, and the engine's own mean latencies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from servetop.analysis.trust.engine_times import EngineTimes
from servetop.core.units import MS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTimesSummary:
    """Means of the engine, and the client's minus these; None if not exported, or if the numbers of requests differ."""

    engine_mean_ttft_ms: float | None = None
    engine_mean_tpot_ms: float | None = None
    engine_mean_e2el_ms: float | None = None
    ttft_beyond_engine_ms: float | None = None
    tpot_beyond_engine_ms: float | None = None
    e2el_beyond_engine_ms: float | None = None

    @classmethod
    def of(cls, times: EngineTimes) -> EngineTimesSummary:
        """Return the times in milliseconds."""
        return cls(
            engine_mean_ttft_ms=_ms(times.ttft.engine),
            engine_mean_tpot_ms=_ms(times.tpot.engine),
            engine_mean_e2el_ms=_ms(times.e2el.engine),
            ttft_beyond_engine_ms=_ms(times.ttft.excess),
            tpot_beyond_engine_ms=_ms(times.tpot.excess),
            e2el_beyond_engine_ms=_ms(times.e2el.excess),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustSummary:
    """The trust meter's verdict and the values behind it."""

    slip_p99_ms: float | None
    slip_basis: str
    loop_lag_p99_ms: float | None
    stamped: bool
    late_share: float | None
    offered_rate: float | None
    sent_rate: float | None
    completed_rate: float | None
    itl_uncertainty_p99_ms: float | None
    littles_law_error: float | None
    token_error: float | None
    engine_times: EngineTimesSummary = field(metadata={"flat": True})
    sender_class: str | None
    """The worst scheduling class of the senders."""
    held_back: bool
    """Whether the concurrency limit queued requests at the client."""
    littles_law_limit: float
    sent_exemption: str | None
    verdict: str
    reasons: tuple[str, ...]
    compared: tuple[str, ...]
    """The checks that were made, such as `loop lag`; a check whose figure is unknown was not."""
    advice: str | None
    """How to make the senders faster; None if they were fast enough, or nothing is known to help."""
    token_source: str | None
    output_share: float | None
    """Output tokens / tokens demanded by `ignore_eos` or `min_tokens`; None without a demand."""


def _ms(seconds: float) -> float | None:
    return None if math.isnan(seconds) else seconds * MS_PER_S
