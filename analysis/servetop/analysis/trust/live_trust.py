"""The inputs of the trust meter over a window of ticks; `trust.py` evaluates them."""

from __future__ import annotations

import math

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.trust.consistency import ClientTokens, EngineCounts, increase, littles_law, token_error
from servetop.analysis.trust.engine_times import TOTALS, ClientTimes, engine_times
from servetop.analysis.trust.trust import Trust
from servetop.analysis.trust.trust_inputs import is_stamped, itl_uncertainty, limit_in_force
from servetop.core.arrays import FloatArray
from servetop.core.events import EngineSample
from servetop.core.tick import TICK_SECONDS, worst_class

MIN_SPAN = 2.0
"""Minimum seconds between the first and the last scrape of a window for a comparison of tokens.

While an engine restarts its last scrapes leave the window, and the ticks at their ends weigh more and more.
"""


def live_trust(history: TickHistory, start: int, stop: int) -> Trust:
    """Return the trust meter's values over ticks `start` to `stop`."""
    if stop <= start:
        return Trust()
    seconds = (stop - start) * TICK_SECONDS

    def column(name: str) -> FloatArray:
        return history.column(name, start=start, stop=stop)

    def rate(name: str) -> float:
        return float(column(name).sum()) / seconds

    ticks = history.ticks[max(0, start - 1) : stop]
    chunks, queued = float(column("chunks").sum()), column("queued")
    engine, client, in_flight = _counts(history, start, stop)
    law = littles_law(engine, in_flight)
    return Trust(
        slip_p99=history.percentiles("slip", start=start, stop=stop)[2],
        ttft_p99=history.percentiles("ttft", start=start, stop=stop)[2],
        loop_lag_p99=history.histogram("loop_lag", start=start, stop=stop).percentile(99),
        stamped=is_stamped(float(column("stamped").sum()), chunks),
        late_share=_late_share(history, start, stop),
        offered_rate=rate("due"),
        sent_rate=rate("sent"),
        completed_rate=rate("ok"),
        refused_rate=min(rate("failed"), max(rate("due") - rate("sent"), 0.0)),
        seconds=seconds,
        all_failed=_all_failed(history, start, stop),
        limited=bool((queued > 0).any()),
        concurrency_limit=limit_in_force(column("max_concurrency"), queued),
        littles_law_error=law.error,
        in_flight=law.in_flight,
        foreign=law.foreign,
        token_error=token_error(engine, client, least_span=MIN_SPAN),
        times=engine_times(engine, ClientTimes.of(ticks)),
        sender_class=worst_class(tick.client.gauges.sender_class for tick in history.ticks[start:stop]),
        itl_p99=history.percentiles("itl", start=start, stop=stop)[2],
        itl_uncertainty_p99=itl_uncertainty(history.histogram("itl_uncertainty", start=start, stop=stop), chunks),
    )


def _counts(history: TickHistory, start: int, stop: int) -> tuple[EngineCounts, ClientTokens, FloatArray]:
    """Return the engine's and the client's counts, and the requests in flight at each scrape, interpolated from ticks.

    The tick before `start` is included, because a scrape of the period may have started in it.
    """
    before = max(0, start - 1)
    ticks = history.ticks[before:stop]
    ends = np.array([tick.end for tick in ticks], dtype=np.float64)
    engine = _engine_counts({tick.engine.scrape_end: tick.engine for tick in ticks if tick.engine is not None})
    known = (engine.times >= history.ticks[start].start) & (engine.starts >= ticks[0].start)
    client = ClientTokens(
        tick_ends=ends,
        received=history.column("output_tokens", start=before, stop=stop),
        finished=np.array([tick.client.output_len.total for tick in ticks], dtype=np.float64),
    )
    within = engine.part(known)
    return within, client, np.interp(within.times, ends, history.column("in_flight", start=before, stop=stop))


def _engine_counts(by_end: dict[float, EngineSample]) -> EngineCounts:
    samples = [sample for _, sample in sorted(by_end.items())]

    def column(name: str) -> FloatArray:
        return np.array([getattr(sample, name) for sample in samples], dtype=np.float64)

    return EngineCounts(
        starts=column("scrape_start"),
        ends=column("scrape_end"),
        requests=column("running") + column("waiting"),
        generated=increase(column("generation_tokens_total")),
        sums={name: increase(column(name)) for pair in TOTALS.values() for name in pair},
    )


def _all_failed(history: TickHistory, start: int, stop: int) -> bool:
    """Whether requests failed and no token of any other request arrived."""
    failed, ok = (float(history.column(each, start=start, stop=stop).sum()) for each in ("failed", "ok"))
    return failed > 0 and not ok and not history.histogram("ttft", start=start, stop=stop).buckets.size


def _late_share(history: TickHistory, start: int, stop: int) -> float:
    """Return the part of the time of a closed loop's requests in which they were late, not in flight; else NaN.

    The requests with which a loop begins are all late at first, while hardly any has ended; so the time that requests
    were in flight counts, instead of the time that those which ended took.
    """
    rates, limits = (history.column(each, start=start, stop=stop) for each in ("request_rate", "max_concurrency"))
    loaded = rates > 0
    if not loaded.any() or np.isfinite(rates[loaded]).any() or np.isnan(limits[loaded]).any():
        return math.nan
    slip, ended = (history.histogram(each, start=start, stop=stop) for each in ("slip", "e2el"))
    late = slip.mean * slip.count
    held = TICK_SECONDS * float(np.nansum(history.column("in_flight", start=start, stop=stop)))
    return late / (late + held) if ended.count and late + held > 0 else math.nan
