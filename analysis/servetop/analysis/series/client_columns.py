"""The columns of ticks that a client measured; those of several watched servers are the same, and read once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from servetop.analysis.series.paged_columns import PagedColumns
from servetop.core.tick import ClientTick

CLIENT_COLUMNS = (
    "due",
    "sent",
    "ok",
    "failed",
    "cancelled",
    "prompt_tokens",
    "output_tokens",
    "chunks",
    "stamped",
    "cpu_seconds",
)
"""Counts per tick, which add up over time."""
OBJECTIVE_COLUMNS = ("good", "good_due", "judged")
"""Counts per tick; NaN in runs without objectives."""
LOAD_COLUMNS = ("in_flight", "queued", "stage", "request_rate", "max_concurrency", "paused")
"""Values at the end of a tick; NaN if unknown."""

COUNT_GETTERS = {**{name: attrgetter(name) for name in CLIENT_COLUMNS}, "first_tokens": attrgetter("ttft.count")}
"""Getters of the columns of counts, from a `ClientTick`."""
VALUE_GETTERS = {
    **{name: attrgetter(f"gauges.{name}") for name in LOAD_COLUMNS},
    **{name: attrgetter(name) for name in OBJECTIVE_COLUMNS},
}
"""Getters of the columns whose values may be None."""


@dataclass(frozen=True, slots=True, eq=False)
class ClientColumns:
    """The entries of some ticks for each column of the client; those of a watch, without a client, are all equal."""

    count: int
    equal: Mapping[str, float]
    """The value of each column whose entries are equal."""
    others: Mapping[str, Sequence[float]]

    @classmethod
    def of(cls, clients: Sequence[ClientTick]) -> ClientColumns:
        """Read the columns of some ticks, at least one."""
        columns: dict[str, list[float]] = {name: list(map(read, clients)) for name, read in COUNT_GETTERS.items()}
        columns |= {name: list(map(number, map(read, clients))) for name, read in VALUE_GETTERS.items()}
        equal = {name: float(values[0]) for name, values in columns.items() if are_equal(values)}
        return cls(len(clients), equal, {name: values for name, values in columns.items() if name not in equal})

    def append_to(self, columns: PagedColumns) -> None:
        """Append them to columns of the same names."""
        for name, value in self.equal.items():
            columns.extend_equal(name, value, self.count)
        for name, values in self.others.items():
            columns.extend(name, values)


def are_equal(values: Sequence[float]) -> bool:
    """Whether all values, at least one, are equal; NaN counts as equal where it is `math.nan`."""
    return values.count(values[0]) == len(values)


def number(value: float | int | None) -> float:
    """Return a value as a number; `math.nan` for None."""
    return math.nan if value is None else float(value)


def append_entries(columns: PagedColumns, name: str, values: Iterable[float]) -> None:
    """Append entries to one column, as equal ones if they are."""
    entries = list(values)
    if are_equal(entries):
        columns.extend_equal(name, entries[0], len(entries))
    else:
        columns.extend(name, entries)
