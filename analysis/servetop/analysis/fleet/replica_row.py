"""One of several watched servers at one time: its state, what hurts, and its figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.engine_gauges import KV_HIGH
from servetop.core.events import EngineSample
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState

JUST_RESTARTED = 30.0
"""Seconds after a restart for which a server counts as just restarted."""

NOT_READY = "not ready"
"""The state of a server whose health page says that it takes no requests, if none runs; else `draining`."""

FIRST_PAGE = 3.0
"""Seconds after a server responds for its first metrics page."""


class ReplicaClass(IntEnum):
    """The state of a server, most urgent first: the order of the table."""

    DEAD = 0
    """It does not respond, or cannot be watched."""
    FAILING = 1
    """It fails requests, by its own counters."""
    RESTARTED = 2
    """It was restarted moments ago."""
    DRAINING = 3
    """Its health page says that it takes no requests, and its metrics are read."""
    SATURATED = 4
    """KV blocks or the batch are full while requests wait."""
    QUEUE = 5
    """A queue lasts for another reason."""
    SLOW = 6
    """It takes much longer for a token than the others."""
    HOT = 7
    """It serves, and its KV blocks are nearly full."""
    DIFFERS = 8
    """It serves or is idle, with another version or other flags than most."""
    SERVING = 9
    IDLE = 10
    UNKNOWN = 11
    """It is not known yet what it does."""
    REMOVED = 12
    """It is not listed any more."""


_CLASSES = {
    Bottleneck.FAILING: ReplicaClass.FAILING,
    Bottleneck.KV: ReplicaClass.SATURATED,
    Bottleneck.BATCH: ReplicaClass.SATURATED,
    Bottleneck.WAITING: ReplicaClass.QUEUE,
    Bottleneck.NO_METRICS: ReplicaClass.DEAD,
    Bottleneck.NOT_JUDGED: ReplicaClass.SERVING,
    Bottleneck.SERVING: ReplicaClass.SERVING,
    Bottleneck.IDLE: ReplicaClass.IDLE,
}
_WITHOUT_PAGE = (Bottleneck.NO_METRICS, Bottleneck.STARTING)
"""Verdicts of a server whose metrics are not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRow:
    """One server at one time; figures that it does not export are NaN."""

    number: int
    name: str
    url: str
    kind: ReplicaClass
    state: str
    """In a few words, such as `KV-bound` or `no response`."""
    since: float
    """Seconds since the origin; NaN if unknown."""
    overloaded_until: float = math.nan
    """When its last overload was seen last, seconds; NaN without one."""
    failed_until: float = math.nan
    """The same of its last failed requests."""
    detail: str = ""
    """Evidence, or why it does not respond."""
    restarted_at: float | None = None
    """When it was restarted last."""
    differs: str = ""
    """What is not as at most servers, such as `max_num_seqs 8`; empty if nothing is."""
    slower: str = ""
    """How much slower than the others it is, such as `4.1 × their time per output token`; empty if it is not."""
    running: float = math.nan
    waiting: float = math.nan
    kv: float = math.nan
    """Share of KV blocks in use, 0-1."""
    preemptions: float = math.nan
    """Preemptions/s."""
    output: float = math.nan
    """Output tokens/s."""
    ttft_p90: float = math.nan
    """Seconds, by the server's own histogram; the bound of its first bucket where it is at most that."""
    ttft_first_bound: float = 0.0
    """The bound of that bucket, seconds."""
    per_token: float = math.nan
    """Seconds per output token in the mean, by the server's own histogram."""
    version: str = ""
    model: str = ""

    @property
    def responds(self) -> bool:
        """Whether its metrics are read."""
        return self.kind not in (ReplicaClass.DEAD, ReplicaClass.UNKNOWN, ReplicaClass.REMOVED)

    @property
    def ttft_at_most(self) -> bool:
        """Whether `ttft_p90` is in the first bucket of its histogram, and so known to be at most its bound."""
        return self.ttft_p90 <= self.ttft_first_bound

    @property
    def serves(self) -> bool:
        """Whether it takes requests, as far as its metrics and its health page tell."""
        return self.responds and self.kind is not ReplicaClass.DRAINING


def state_of(change: ReplicaChange | None, verdict: Diagnosis) -> str:
    """Return the state of a server in a few words; one that takes no requests is `draining` while some run."""
    if change is None or change.state is ReplicaState.ATTACHING:
        return "attaching"
    if change.state is ReplicaState.GONE:
        return Bottleneck.NO_RESPONSE.value
    if change.state is ReplicaState.REFUSED:
        return "not watched"
    if change.state is ReplicaState.REMOVED:
        return "not listed"
    if change.not_ready is not None and verdict.bottleneck not in _WITHOUT_PAGE:
        return (
            NOT_READY if verdict.bottleneck in (Bottleneck.IDLE, Bottleneck.NOT_JUDGED) else Bottleneck.DRAINING.value
        )
    return "attaching" if verdict.bottleneck is Bottleneck.STARTING else verdict.bottleneck.value


def awaits_first_page(change: ReplicaChange | None, sample: EngineSample | None, at: float) -> bool:
    """Whether a server responds and its first metrics page is not due yet."""
    return change is not None and change.state.responds and sample is None and at - change.at < FIRST_PAGE


def class_of(
    change: ReplicaChange | None, verdict: Diagnosis, *, kv: float, restarted_for: float | None
) -> ReplicaClass:
    """Return the state of a server; `restarted_for` is the time since its last restart, in seconds."""
    if change is None or change.state is ReplicaState.ATTACHING:
        return ReplicaClass.UNKNOWN
    if change.state is ReplicaState.REMOVED:
        return ReplicaClass.REMOVED
    if not change.state.responds:
        return ReplicaClass.DEAD
    if change.not_ready is not None and verdict.bottleneck not in _WITHOUT_PAGE:
        return ReplicaClass.DRAINING
    if restarted_for is not None and restarted_for < JUST_RESTARTED:
        return ReplicaClass.RESTARTED
    return class_of_verdict(verdict, kv=kv)


def class_among(kind: ReplicaClass, *, slower: bool, differs: bool) -> ReplicaClass:
    """Return the state of a server among others: one that has no trouble of its own may be slower, or differ."""
    if slower and kind in (ReplicaClass.SERVING, ReplicaClass.HOT):
        return ReplicaClass.SLOW
    return ReplicaClass.DIFFERS if differs and kind in (ReplicaClass.SERVING, ReplicaClass.IDLE) else kind


def class_of_verdict(verdict: Diagnosis, *, kv: float) -> ReplicaClass:
    """Return the state of a server by its metrics alone."""
    kind = _CLASSES.get(verdict.bottleneck, ReplicaClass.UNKNOWN)
    return ReplicaClass.HOT if kind is ReplicaClass.SERVING and kv >= KV_HIGH else kind
