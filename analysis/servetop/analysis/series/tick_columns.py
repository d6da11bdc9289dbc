"""The columns of ticks for steady-state detection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servetop.core.arrays import FloatArray, np
from servetop.core.tick import Tick

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TickColumns:
    """Columns of consecutive ticks for the search for a steady state; each of shape (ticks,)."""

    start: FloatArray
    """Seconds since the run's origin."""
    in_system: FloatArray
    """Requests in flight or queued at the client at the tick's end."""
    output_tokens: FloatArray
    completed: FloatArray
    """Requests that ended, with any status."""
    due: FloatArray
    request_rate: FloatArray
    """Target rate at the tick's end; inf is a closed loop, NaN no load."""
    max_concurrency: FloatArray
    paused: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, ticks: Sequence[Tick]) -> TickColumns:
        """Build the columns from consecutive ticks."""
        clients = [tick.client for tick in ticks]
        gauges = [client.gauges for client in clients]

        def column(values: Iterable[float | None]) -> FloatArray:
            return np.array(list(values), dtype=np.float64)

        return cls(
            start=column(tick.start for tick in ticks),
            in_system=column(each.in_flight + each.queued for each in gauges),
            output_tokens=column(each.output_tokens for each in clients),
            completed=column(each.ok + each.failed + each.cancelled for each in clients),
            due=column(each.due for each in clients),
            request_rate=column(each.request_rate for each in gauges),
            max_concurrency=column(each.max_concurrency for each in gauges),
            paused=np.array([each.paused for each in gauges], dtype=np.bool_),
        )

    def part(self, first: int, stop: int) -> TickColumns:
        """Ticks `first` up to, not including, `stop`."""
        names = TickColumns.__dataclass_fields__
        return TickColumns(**{name: getattr(self, name)[first:stop] for name in names})

    @property
    def size(self) -> int:
        """Number of ticks."""
        return self.start.size
