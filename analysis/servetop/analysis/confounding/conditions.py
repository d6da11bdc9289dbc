"""The measured conditions of a run or a stage: cache, lengths, client, KV size, GPUs, replicas and failures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from servetop.analysis.trust.cache_check import CacheCheck
from servetop.analysis.trust.trust import Trust
from servetop.core.arrays import BoolArray, FloatArray, IntArray
from servetop.core.config import RunConfig


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunConditions:
    """What was measured; `stages` has the conditions of each stage with load by its index, only for a whole run."""

    config: RunConfig
    requests: int
    """Requests that ended, of any status, without warm-ups."""
    failed: int
    """Errors, timeouts and truncated answers among them; cancelled ones are not counted."""
    lengths: ObservedLengths
    cache: CacheCounts
    client: ClientLoad
    kv: KvSize
    gpus: Mapping[int, GpuReadings] = field(default_factory=dict)
    """Readings of each device under the engine, by its index."""
    replicas: ReplicaCounts
    error_lines: int = 0
    """Lines of the engine's log with an error, while there was load."""
    restarts: int = 0
    """Times that the engine's counters restarted from 0."""
    cache_check: CacheCheck = CacheCheck()
    """The hit rate of the run beside what its workload explains."""
    stages: Mapping[int, RunConditions] = field(default_factory=dict)

    @property
    def completed(self) -> int:
        """Requests that succeeded."""
        return int(self.lengths.ids.size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedLengths:
    """Token counts of the completed requests, in the order in which they were sent; arrays of shape (requests,)."""

    ids: IntArray
    prompt: FloatArray
    output: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CacheCounts:
    """Increases of the prefix cache's counters at each scrape; arrays of shape (scrapes,), empty if not exported."""

    hits: FloatArray
    """Tokens found."""
    queries: FloatArray
    """Tokens looked up."""
    generated: FloatArray
    """Output tokens, which take space in the cache too."""
    capacity: float = math.nan
    """Tokens that the KV caches of all replicas hold."""
    from_start: bool = True
    """Whether the first increases are those of the run, rather than of a later stage."""

    @property
    def hit_rate(self) -> float:
        """Tokens found / tokens looked up; NaN without any."""
        queries = float(self.queries.sum())
        return float(self.hits.sum()) / queries if queries > 0 else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLoad:
    """How busy the client was."""

    trust: Trust
    """The trust meter's values, with slip and loop lag."""
    cpu_share: float
    """CPU time of the senders / time / senders; NaN without ticks, and if their number varies (`--workers auto`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvSize:
    """The KV cache of one replica; None is unknown."""

    blocks: float | None
    block_size: int | None

    @property
    def tokens(self) -> float | None:
        """Tokens that it holds; None if unknown."""
        return None if self.blocks is None or self.block_size is None else self.blocks * self.block_size


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GpuReadings:
    """The readings of one device; arrays of shape (readings,), NaN where a value was not reported."""

    utilisation: FloatArray
    """0-1."""
    sm_clock: FloatArray
    """Hz."""
    power: FloatArray
    """Watts."""
    throttled: BoolArray
    """Whether its clocks were throttled."""
    reasons: tuple[str, ...] = ()
    """Distinct reasons for it."""
    foreign_memory: float = math.nan
    """Mean bytes held by processes other than the engine's; NaN if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCounts:
    """The requests that each replica served, or with a load balancer the output tokens of each."""

    configured: int
    """1 for a single server."""
    served: tuple[float, ...] = ()
    """One count for each configured replica; empty for a single server, or if unknown."""
    requests: int = 0
    """Requests behind these counts."""

    @property
    def answered(self) -> int:
        """Replicas that served anything."""
        return sum(count > 0 for count in self.served)

    @property
    def shares(self) -> tuple[float, ...]:
        """Fraction of the load that each replica served, the largest first; empty if unknown."""
        total = sum(self.served)
        return tuple(sorted((count / total for count in self.served), reverse=True)) if total else ()
