"""What a run receives from its engine between two ticks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from servetop.core.events import EngineSample, GpuSample, LogLine, Note, ReplicaSample
from servetop.core.interfaces.replica_change import ReplicaChange
from servetop.core.interfaces.series_scrape import SeriesScrape


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUpdate:
    """Everything received from the engine since the last update."""

    samples: list[EngineSample] = field(default_factory=list)
    replicas: list[ReplicaSample] = field(default_factory=list)
    """Samples of each server, if there are several."""
    changes: list[ReplicaChange] = field(default_factory=list)
    """Changes of watched servers, if there are several."""
    series: list[SeriesScrape] = field(default_factory=list)
    """Series of the engine page."""
    gpus: list[GpuSample] = field(default_factory=list)
    log_lines: list[LogLine] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


class RecordedEngine(Protocol):
    """An engine, or several servers, whose samples are recorded with each tick."""

    def take_update(self) -> EngineUpdate:
        """Take what was received since the last call."""
        ...

    def newest_sample(self) -> EngineSample | None:
        """Return the newest sample; None without one."""
        ...

    def newest_gpus(self) -> tuple[GpuSample, ...]:
        """Return the newest sample of each GPU."""
        ...
