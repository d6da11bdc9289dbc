"""The tick: everything a panel can show about one interval (250 ms) of a run; ticks merge by addition."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from servetop.core.events import EngineSample, GpuSample, RequestStatus
from servetop.core.histogram import EMPTY, LogHistogram

TICK_SECONDS = 0.25
"""Length of a tick. Each recording has it in its header, and is refused by a version with another one."""


class SenderClass(StrEnum):
    """The scheduling class of the senders, best first: whether they wait for a processor behind other programs."""

    REAL_TIME = "real-time"
    """They run before all other programs."""
    ORDINARY = "ordinary"
    """The system does not permit the real-time class."""
    LEFT = "left"
    """They left the real-time class, because they needed too much of a processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadGauges:
    """The state of the load at the end of a tick: settings in force and requests in progress."""

    stage: int = -1
    """Index of the stage in force; -1 before the load starts."""
    request_rate: float | None = None
    """Target, requests/s; None when nothing is scheduled."""
    max_concurrency: int | None = None
    in_flight: int = 0
    """Requests sent and not finished."""
    queued: int = 0
    """Requests due but queued by the concurrency limit."""
    holding: bool = False
    """The ramp is held at this stage."""
    paused: bool = False
    """Nothing is being sent."""
    sender_class: SenderClass | None = None
    """The worst of all senders; None before the load, and if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClientTick:
    """What the senders saw in one interval: counters and histograms add, gauges add over senders."""

    index: int
    """The interval [index, index + 1) · TICK_SECONDS of the run."""
    gauges: LoadGauges = LoadGauges()
    due: int = 0
    """Requests whose due time fell into the interval ("offered")."""
    sent: int = 0
    ok: int = 0
    errors: int = 0
    timeouts: int = 0
    cancelled: int = 0
    truncated: int = 0
    good: int | None = None
    """Requests that ended in the interval and met every objective; None without objectives and in older recordings."""
    good_due: int | None = None
    """The same with TTFT, TTFOT and E2EL counted from due instead of sent: as the user felt it."""
    prompt_tokens: int = 0
    """Prompt tokens of the requests whose first token arrived in the interval (their prefill was done)."""
    output_tokens: int = 0
    """Tokens that arrived in the interval, including those of requests still in flight."""
    chunks: int = 0
    stamped: int = 0
    """Chunks whose arrival the kernel stamped: exact, however late they were read."""
    cpu_seconds: float = 0.0
    """CPU time that the senders used in the interval."""
    ttft: LogHistogram = EMPTY
    """First token - sent, by arrival of the first token."""
    ttft_due: LogHistogram = EMPTY
    """First token - due: as the user felt it."""
    ttfot: LogHistogram = EMPTY
    """First token of the answer - sent, of successful requests; counted from the first request that reasoned."""
    itl: LogHistogram = EMPTY
    """Gap between chunks / tokens of the later chunk, weighted by those tokens."""
    tpot: LogHistogram = EMPTY
    e2el: LogHistogram = EMPTY
    input_len: LogHistogram = EMPTY
    """Prompt tokens of each successful request that ended in the interval."""
    output_len: LogHistogram = EMPTY
    """Output tokens of each successful request that ended in the interval."""
    slip: LogHistogram = EMPTY
    """Sent - due, of requests not queued by the concurrency limit."""
    client_wait: LogHistogram = EMPTY
    """Sent - due, of requests queued by the concurrency limit."""
    loop_lag: LogHistogram = EMPTY
    """Lateness of a 20 ms heartbeat in the sender's event loop."""
    server_queue: LogHistogram = EMPTY
    """Queue time of each request that ended in the interval, where the server reports it with the response."""
    server_prefill: LogHistogram = EMPTY
    """Prefill time of each such request: scheduled to first token."""
    itl_uncertainty: LogHistogram = EMPTY
    """Seconds within which a gap between chunks is known, for gaps next to chunks that were read together."""

    @property
    def failed(self) -> int:
        """Requests that failed in the interval; cancelled ones are not counted."""
        return self.errors + self.timeouts + self.truncated

    @property
    def judged(self) -> int | None:
        """Requests that ended in the interval, except cancelled ones, if their objectives were checked; else None."""
        return None if self.good_due is None else self.ok + self.failed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tick:
    """One interval of a run: the client's side, and the newest engine and GPU samples taken before its end."""

    client: ClientTick
    engine: EngineSample | None = None
    """None without an engine, or if the last scrape failed."""
    gpus: tuple[GpuSample, ...] = ()

    @property
    def index(self) -> int:
        """Index of the interval, from 0 at the run's origin."""
        return self.client.index

    @property
    def start(self) -> float:
        """Seconds since the run's origin."""
        return self.client.index * TICK_SECONDS

    @property
    def end(self) -> float:
        """Seconds since the run's origin."""
        return (self.client.index + 1) * TICK_SECONDS


COUNTED_AS: Mapping[RequestStatus, str] = {
    RequestStatus.OK: "ok",
    RequestStatus.ERROR: "errors",
    RequestStatus.TIMEOUT: "timeouts",
    RequestStatus.CANCELLED: "cancelled",
    RequestStatus.TRUNCATED: "truncated",
}
"""The field of ClientTick that counts the requests that ended with a status."""
COUNTERS = (
    "due",
    "sent",
    *COUNTED_AS.values(),
    "prompt_tokens",
    "output_tokens",
    "chunks",
    "stamped",
    "cpu_seconds",
)
"""Names of the fields of ClientTick that add up as numbers."""
OPTIONAL_COUNTERS = ("good", "good_due")
"""Names of those that may be None, which adds nothing."""
HISTOGRAMS = tuple(field.name for field in fields(ClientTick) if field.type == "LogHistogram")
"""Names of the fields of ClientTick that are histograms."""


def whole_ticks(at: float) -> float:
    """Return the end of the last whole tick up to a time, in seconds."""
    return math.floor(at / TICK_SECONDS + 1e-9) * TICK_SECONDS


def merge_client_ticks(ticks: Sequence[ClientTick], *, gauges: LoadGauges | None = None) -> ClientTick:
    """Sum ticks: of several senders over one interval, or of several intervals (then pass the last gauges).

    Without `gauges` the in-flight and queued counts of all are added (several senders, one interval).
    """
    first = ticks[0]
    sums: dict[str, Any] = {name: sum(getattr(tick, name) for tick in ticks) for name in COUNTERS}
    sums |= {name: _sum_of_known([getattr(tick, name) for tick in ticks]) for name in OPTIONAL_COUNTERS}
    merged: dict[str, Any] = {name: LogHistogram.merged(getattr(tick, name) for tick in ticks) for name in HISTOGRAMS}
    return (
        ClientTick(index=ticks[-1].index, gauges=gauges or _added(tick.gauges for tick in ticks), **sums, **merged)
        if len(ticks) > 1
        else first
    )


def worst_class(classes: Iterable[SenderClass | None]) -> SenderClass | None:
    """Return the worst of some scheduling classes; None if all are unknown."""
    return max((each for each in classes if each is not None), key=list(SenderClass).index, default=None)


def _sum_of_known(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _added(gauges: Iterable[LoadGauges]) -> LoadGauges:
    every = list(gauges)
    rates = [each.request_rate for each in every if each.request_rate is not None]
    limits = [each.max_concurrency for each in every if each.max_concurrency is not None]
    return LoadGauges(
        stage=max(each.stage for each in every),
        request_rate=sum(rates) if rates else None,
        max_concurrency=sum(limits) if limits else None,
        in_flight=sum(each.in_flight for each in every),
        queued=sum(each.queued for each in every),
        holding=any(each.holding for each in every),
        paused=any(each.paused for each in every),
        sender_class=worst_class(each.sender_class for each in every),
    )
