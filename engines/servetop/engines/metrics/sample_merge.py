"""Merges the samples of several servers: sums gauges, sums counters through restarts, averages ratios."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.events import EngineSample
from servetop.engines.metrics.metrics_reader import GAUGES

COUNTERS = tuple(name for name in GAUGES if name.endswith("_total") and name != "kv_blocks_total")
"""Fields of EngineSample that only grow while an engine runs."""
_SUMS = tuple(name for name in GAUGES if name not in (*COUNTERS, "kv_usage"))


class CounterTotals:
    """One server's counters, which continue through restarts and remain after it stops."""

    def __init__(self) -> None:
        self._before: dict[str, float] = {}
        self._newest: dict[str, float] = {}

    def add(self, sample: EngineSample) -> None:
        """Add the next sample; a counter that fell was reset to 0 by a restart."""
        for name in COUNTERS:
            value = getattr(sample, name)
            if value is None:
                continue
            last = self._newest.get(name, 0.0)
            if value < last:
                self._before[name] = self._before.get(name, 0.0) + last
            self._newest[name] = value

    def total(self, name: str) -> float | None:
        """Return the sum over all restarts; None if the counter was never reported."""
        newest = self._newest.get(name)
        return None if newest is None else self._before.get(name, 0.0) + newest


class CounterIncreases(CounterTotals):
    """One server's counters since its first sample: what a server that joins later counted before adds nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[str, float] = {}

    def add(self, sample: EngineSample) -> None:
        """Add the next sample."""
        super().add(sample)
        for name in COUNTERS:
            if (value := getattr(sample, name)) is not None:
                self._first.setdefault(name, value)

    def total(self, name: str) -> float | None:
        """Return the increase since the first sample; None if the counter was never reported."""
        total = super().total(name)
        return None if total is None else total - self._first[name]


def merge_samples(samples: Sequence[EngineSample], totals: Sequence[CounterTotals]) -> EngineSample:
    """Merge the newest samples of the running servers (at least one) and the counters of all servers.

    `kv_usage` is the mean, weighted by KV blocks if all servers report them.
    """
    values = {name: _sum([getattr(each, name) for each in samples]) for name in _SUMS}
    values |= {name: _sum([each.total(name) for each in totals]) for name in COUNTERS}
    return EngineSample(
        scrape_start=min(each.scrape_start for each in samples),
        scrape_end=max(each.scrape_end for each in samples),
        kv_usage=_usage(samples),
        **values,
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _usage(samples: Sequence[EngineSample]) -> float | None:
    known = [each for each in samples if each.kv_usage is not None]
    if not known:
        return None
    sized = all(each.kv_blocks_total for each in known)
    weights = [each.kv_blocks_total or 0.0 if sized else 1.0 for each in known]
    shares = [(each.kv_usage or 0.0) * weight for each, weight in zip(known, weights, strict=True)]
    return sum(shares) / sum(weights)
