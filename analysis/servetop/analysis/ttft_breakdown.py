"""Where the time to first token goes, as means over a window: the client's part, the engine's, and what is left.

Two populations meet here: the client's times and the engine's own TTFT are of requests whose first token came in the
window, but an engine tells a request's queue and prefill time when the request ends. In a steady state both are the
same. Where queue and prefill do not make up the time that the requests of the window spent at the engine, they are of
other requests: then that time is given whole, and not split.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.tick import TICK_SECONDS

_UNSPLIT_SHARE, _UNSPLIT_SECONDS = 0.25, 0.01
"""By what share of the time at the engine, and by what at least, queue and prefill must miss it: means vary, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TtftBreakdown:
    """Means in seconds; NaN is not known. The known parts and `unexplained` add up to `total`."""

    total: float = math.nan
    """First token - due."""
    client_queue: float = math.nan
    """Sent - due: held back by the concurrency limit, and slip."""
    network: float = math.nan
    """Client's TTFT - the engine's own: the wire both ways, and what lies before the engine's clock starts."""
    engine_queue: float = math.nan
    prefill: float = math.nan
    at_engine: float = math.nan
    """Queue and prefill together, where they cannot be told apart: both of them are not known then."""
    unexplained: float = math.nan
    """What no part accounts for; with no queue or prefill exported, all of the engine's time. May be negative."""
    requests: int = 0
    """Requests whose first token came in the window."""

    @property
    def known(self) -> float:
        """Sum of the parts that are known."""
        return sum(part for part in self.parts if not math.isnan(part))

    @property
    def is_split(self) -> bool:
        """False where the engine's figures are of other requests than the window's."""
        return math.isnan(self.at_engine)

    @property
    def parts(self) -> tuple[float, ...]:
        """In the order in which a request goes through them; queue and prefill are one where they are not split."""
        engine = (self.engine_queue, self.prefill) if self.is_split else (self.at_engine,)
        return (self.client_queue, self.network, *engine)


def ttft_parts(history: TickHistory, start: int, stop: int) -> TtftBreakdown:
    """Over ticks `start` to `stop`; a part that comes out below zero is left to `unexplained`."""
    requests, from_sent = _client_mean(history, "ttft", start, stop)
    if not requests:
        return TtftBreakdown()
    _, total = _client_mean(history, "ttft_due", start, stop)
    lag = _lag(history, stop)
    _, seen = _client_mean(history, "ttft", max(start - lag, 0), stop - lag)
    at_engine = _mean(history, "engine_first_token_seconds", "engine_first_tokens", start, stop)
    parts = TtftBreakdown(
        total=total,
        client_queue=max(total - from_sent, 0.0),
        network=math.nan if math.isnan(at_engine) or math.isnan(seen) else max(seen - at_engine, 0.0),
        engine_queue=_told_or_mean(history, "queue", "engine_queued", start, stop),
        prefill=_told_or_mean(history, "prefill", "engine_prefilled", start, stop),
        requests=requests,
    )
    parts = _of_the_same_requests(parts, from_sent if math.isnan(at_engine) else at_engine, seen=from_sent)
    return replace(parts, unexplained=parts.total - parts.known)


def _of_the_same_requests(parts: TtftBreakdown, at_engine: float, *, seen: float) -> TtftBreakdown:
    """The parts as they are, or with the time at the engine in one where queue and prefill do not make it up.

    Of an engine without a TTFT of its own only too much of them can be seen: what lacks may be the network.
    """
    told = [part for part in (parts.engine_queue, parts.prefill) if not math.isnan(part)]
    own = not math.isnan(parts.network)
    off = sum(told) - at_engine
    tolerance = max(_UNSPLIT_SHARE * at_engine, _UNSPLIT_SECONDS)
    lacks = own and len(told) != 1 and off < -tolerance  # of one that tells but one of them, the other is what lacks
    if not lacks and off <= tolerance:
        return parts
    network = 0.0 if math.isnan(parts.network) else parts.network
    whole = max(min(at_engine, seen - network), 0.0)
    return replace(parts, engine_queue=math.nan, prefill=math.nan, at_engine=whole)


def _client_mean(history: TickHistory, name: str, start: int, stop: int) -> tuple[int, float]:
    """How many, and their mean in seconds; NaN for none."""
    histograms = [getattr(tick.client, name) for tick in history.ticks[start:stop]]
    count = sum(each.count for each in histograms if each.buckets.size)
    return count, math.fsum(each.total for each in histograms) / count if count else math.nan


def _told_or_mean(history: TickHistory, part: str, count: str, start: int, stop: int) -> float:
    """From what was told with each answer, where it was; else from the engine's sums, which know all its clients."""
    told, mean = _client_mean(history, f"server_{part}", start, stop)
    return mean if told else _mean(history, f"engine_{part}_seconds", count, start, stop)


def _lag(history: TickHistory, stop: int) -> int:
    """1 when the engine's figures in a tick are those of its beginning: scraped then, they cover the ticks before it.

    First tokens come in bursts, and while TTFT grows one burst more or less in the window is a large difference.
    """
    sample = history.ticks[stop - 1].engine
    if sample is None:
        return 0
    return int(history.ticks[stop - 1].end - (sample.scrape_start + sample.scrape_end) / 2 > TICK_SECONDS / 2)


def _mean(history: TickHistory, seconds: str, count: str, start: int, stop: int) -> float:
    """NaN where the engine exports neither, or nothing was counted in the window."""
    summed, counted = (float(np.nansum(history.column(name, start=start, stop=stop))) for name in (seconds, count))
    return summed / counted if counted > 0 else math.nan
