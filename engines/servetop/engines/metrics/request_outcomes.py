"""The requests that ended and those that failed, by the counters of an engine, as fields of an `EngineSample`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from servetop.analysis.exported.failure_counters import FAILURE_COUNTERS, FailureCounter
from servetop.core.bounds import LARGEST_VALUE
from servetop.engines.metrics.metrics_reader import FieldSource, Found, Places


def request_outcomes(*names: str, absent: float | None = None) -> Mapping[str, FieldSource]:
    """Return the sources of `requests_ended_total` and `requests_failed_total`: the failure counters of these names.

    Of several the first that a page has counts. `absent`: both values if it has none, 0 where counters appear with
    their first increment.
    """
    counters = tuple(each for each in FAILURE_COUNTERS if each.name in names)
    return {
        "requests_ended_total": OutcomeCount(counters, failed=False, absent=absent),
        "requests_failed_total": OutcomeCount(counters, failed=True, absent=absent),
    }


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """The sum of the rows of a counter, and of that beside it; `failed`: only of those that are failures."""

    counters: tuple[FailureCounter, ...]
    failed: bool
    absent: float | None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all series that may be read."""
        return tuple(name for each in self.counters for name in (*each.names, *each.names_beside))

    def places(self, found: Found) -> Places | None:
        """Return the rows of the first counter of which the page has any, those of failures or all of them."""
        for counter in self.counters:
            own, beside = ([row for name in names for row in found.rows.get(name, ())] for names in _names_of(counter))
            if own or beside:
                failed = (row for row in own if counter.is_failure(row[1].labels.get(counter.label, "")))
                return tuple(place for place, _ in (failed if self.failed else (*own, *beside)))
        return None

    def total(self, values: Sequence[float]) -> float | None:
        """Return the sum; None if a value is negative, NaN or too large."""
        total = sum(values)
        return float(total) if min(values, default=0.0) >= 0 and 0 <= total <= LARGEST_VALUE else None


def _names_of(counter: FailureCounter) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return counter.names, counter.names_beside
