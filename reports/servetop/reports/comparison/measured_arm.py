"""The recordings of one configuration as they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath

from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.comparison.report_types import ComparedArm
from servetop.analysis.confounding.conditions import RunConditions
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredRun:
    """One recording."""

    path: str
    header: RunHeader
    arm: ArmRun
    conditions: RunConditions
    seconds: float
    """Length of the run so far."""
    running: bool = False
    end: RunEnd | None = None
    """None while it runs, or if it was killed."""
    damage: str | None = None

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return PurePath(self.path).stem


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredArm:
    """The recordings of one configuration, at least one."""

    letter: str
    runs: Sequence[MeasuredRun]

    @property
    def first(self) -> MeasuredRun:
        """The recording whose header stands for all."""
        return self.runs[0]

    @property
    def price_per_hour(self) -> float | None:
        """The price of everything that serves; None without one."""
        return next((stage.price_per_hour for stage in self.first.arm.stages), None)

    def summary(self) -> ComparedArm:
        """Return its description for the report."""
        header = self.first.header
        facts, config = header.engine, header.config
        names = list(dict.fromkeys(config.label or run.name for run in self.runs for config in (run.header.config,)))
        name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        return ComparedArm(
            letter=self.letter,
            name=name,
            recordings=tuple(run.path for run in self.runs),
            engine=config.engine.known_as if facts is None else facts.name,
            engine_version=None if facts is None else facts.version,
            model=(facts and facts.model) or config.engine.model or None,
            seeds=tuple(dict.fromkeys(run.header.config.seed for run in self.runs)),
            starts=len(self.runs),
            seconds=sum(run.seconds for run in self.runs),
            price_per_hour=self.price_per_hour,
            requests=sum(run.conditions.requests for run in self.runs),
            failed=sum(run.conditions.failed for run in self.runs),
            date=datetime.fromtimestamp(header.anchor.wall_epoch_s, tz=UTC).isoformat(timespec="seconds"),
            running=any(run.running for run in self.runs),
        )
