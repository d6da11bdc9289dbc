"""Where the time to first token goes, as means over a window: the client's part, the engine's, and what is left.

Two populations meet here, and nothing can be done about it from outside: the client's times and the engine's own TTFT
are of requests whose first token came in the window, but an engine tells a request's queue and prefill time when the
request ends. In a steady state both are the same; while latencies change, what is left over grows or falls below zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from servetop.core.history import TickHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class TtftParts:
    """Means in seconds; NaN is not known. The known parts and `unexplained` add up to `total`."""

    total: float = math.nan
    """First token - due."""
    client_queue: float = math.nan
    """Sent - due: held back by the concurrency limit, and slip."""
    network: float = math.nan
    """Client's TTFT - the engine's own: the wire both ways, and what lies before the engine's clock starts."""
    engine_queue: float = math.nan
    prefill: float = math.nan
    unexplained: float = math.nan
    """What no part accounts for; with no queue or prefill exported, all of the engine's time. May be negative."""
    requests: int = 0
    """Requests whose first token came in the window."""

    @property
    def known(self) -> float:
        """Sum of the parts that are known."""
        return sum(part for part in self.parts if not math.isnan(part))

    @property
    def parts(self) -> tuple[float, float, float, float]:
        """In the order in which a request goes through them."""
        return (self.client_queue, self.network, self.engine_queue, self.prefill)


def ttft_parts(history: TickHistory, start: int, stop: int) -> TtftParts:
    """Over ticks `start` to `stop`; a part that comes out below zero is left to `unexplained`."""
    ticks = [tick.client for tick in history.ticks[start:stop] if tick.client.ttft_due.buckets.size]
    requests = sum(client.ttft_due.count for client in ticks)
    if not requests:
        return TtftParts()
    total = math.fsum(client.ttft_due.total for client in ticks) / requests
    from_sent = math.fsum(client.ttft.total for client in ticks) / requests
    at_engine = _mean(history, "engine_first_token_seconds", "engine_first_tokens", start, stop)
    parts = TtftParts(
        total=total,
        client_queue=max(total - from_sent, 0.0),
        network=math.nan if math.isnan(at_engine) else max(from_sent - at_engine, 0.0),
        engine_queue=_mean(history, "engine_queue_seconds", "engine_queued", start, stop),
        prefill=_mean(history, "engine_prefill_seconds", "engine_prefilled", start, stop),
        requests=requests,
    )
    return replace(parts, unexplained=parts.total - parts.known)


def _mean(history: TickHistory, seconds: str, count: str, start: int, stop: int) -> float:
    """NaN where the engine exports neither, or nothing was counted in the window."""
    summed, counted = (float(np.nansum(history.column(name, start=start, stop=stop))) for name in (seconds, count))
    return summed / counted if counted > 0 else math.nan
