"""Everything that the verdict of one time of a run depends on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.overload import Limit
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE
from servetop.analysis.diagnosis.replica_limits import holds_more
from servetop.analysis.engine_gauges import STALE_AFTER, kv_usage
from servetop.analysis.live_stats import LiveStats
from servetop.core.events import ReplicaSample, StageChange
from servetop.core.interfaces.run_source import EngineFacts

GROWTH_SECONDS = 5.0
PEAK_SECONDS = 5.0
"""Seconds over which the usage of a small KV cache swings."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Everything the verdict of one time depends on; nothing in it is later."""

    stats: LiveStats
    facts: EngineFacts | None = None
    watched: bool = False
    """Whether the server is watched under the load of other clients, so that there is nothing of a client."""
    scheduled: bool = False
    """Whether the load is an open loop although its rate is not known, as `RunHeader.is_scheduled_import`."""
    stage: StageChange | None = None
    """The stage in force; None before the first one."""
    load_since: float = math.nan
    """Start of the load, seconds; NaN before it."""
    restarting: bool = False
    """Whether the run restarts its engine: the requests are drained, and the next stage has not started."""
    restarted_at: float = math.nan
    """Start of the load after the last restart of the engine, seconds; NaN if the run did not restart it."""
    episodes: tuple[Episode, ...] = ()
    """Those that last."""
    limit: Limit | None = None
    """The limit of the overload that lasts; None without one."""
    growth: float = 0.0
    """Requests by which those in flight increased within GROWTH_SECONDS, since the start of the stage at most."""
    most_in_flight: float = math.inf
    """The most requests in flight of the window, and of the time that its pages may describe."""
    overloaded_before: bool = False
    """Whether requests in flight grew under this load and have not fallen much, or an overload of it ended recently."""
    kv_peak: float = math.nan
    """The highest KV usage within PEAK_SECONDS, 0..1; NaN if unknown."""
    replicas: Sequence[ReplicaSample] = ()
    """The newest sample of each of several replicas."""
    failure: str = ""
    """Why requests fail; empty if unknown."""
    ended_by: str = ""
    """The error that ends the run, such as an engine that was killed; empty without one."""

    def episode(self, *kinds: EpisodeKind) -> Episode | None:
        """Return the first episode of the first of these kinds that lasts; None if there is none."""
        return next((each for kind in kinds for each in self.episodes if each.kind is kind), None)

    @property
    def sample_age(self) -> float:
        """Seconds since the newest engine sample; NaN without one."""
        sample = self.stats.engine
        return math.nan if sample is None else self.stats.at - sample.scrape_end

    @cached_property
    def fresh(self) -> bool:
        """Whether the newest engine sample describes the present, and its page the present stage."""
        age = 0.0 if self.facts is None else self.facts.page_age
        current = self.stats.is_watched_now if self.watched else self.sample_age <= STALE_AFTER
        return current and (self.stage is None or self.stats.at - self.stage.at >= age)

    @property
    def waiting(self) -> float:
        """Requests waiting at the engine; NaN if unknown."""
        sample = self.stats.engine
        if sample is None or sample.waiting is None or not self.fresh or self.lacks_replicas:
            return math.nan
        return float(sample.waiting)

    @property
    def lacks_replicas(self) -> bool:
        """Whether the metrics of several replicas are far from all requests in flight: one of them has none."""
        return self.facts is not None and len(self.facts.replica_urls) > 1 and self.stats.trust.holds_too_few

    @property
    def knows_every_replica(self) -> bool:
        """Whether each of several replicas has metrics; True of a single server."""
        count = 0 if self.facts is None else len(self.facts.replica_urls)
        return count < 2 or len(self.replicas) == count

    @property
    def limit_is_elsewhere(self) -> bool:
        """Whether the limit of some replicas says little of the others, which have no metrics.

        They hold far more requests each, or nothing waits where a queue is known.
        """
        count, trust = 0 if self.facts is None else len(self.facts.replica_urls), self.stats.trust
        inside = trust.in_flight * (1 + trust.littles_law_error)
        waiting = None if self.stats.engine is None else self.stats.engine.waiting
        if not 0 < len(self.replicas) < count or waiting is None:
            return False
        return waiting <= SHORT_QUEUE or holds_more(trust.in_flight, inside, seen=len(self.replicas), count=count)

    @property
    def missing(self) -> str:
        """What the engine does not export of its queue, KV usage, running sequences and batch limit; may be empty."""
        sample = self.stats.engine
        if sample is None:
            return "metrics"
        batch = sample.max_num_seqs is not None or (self.facts is not None and self.facts.max_num_seqs is not None)
        found = {
            "queue": not math.isnan(self.waiting),
            "KV usage": not math.isnan(self.kv),
            "running count": sample.running is not None,
            "batch limit": batch or (self.stage is not None and self.stage.max_num_seqs is not None),
        }
        return " and ".join(name for name, known in found.items() if not known)

    @property
    def kv(self) -> float:
        """KV usage, 0..1, of several replicas that of the fullest; NaN if unknown."""
        usages = [kv_usage(each) for each in self.replicas] or [kv_usage(self.stats.engine)]
        return max(usages) if self.fresh and not any(map(math.isnan, usages)) else math.nan

    @property
    def ended_requests(self) -> int:
        """Requests that succeeded or failed since the start of the run."""
        return self.stats.totals.completed + self.stats.totals.failed
