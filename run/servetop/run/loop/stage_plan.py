"""Splits the planned stages where the engine changes, and finds a stage again that is repeated under a new number."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from servetop.core.config import AS_IS, RunConfig, StageConfig
from servetop.core.config_values.cell_engine import engine_settings
from servetop.core.config_values.cell_settings import settings_label
from servetop.core.events import StageChange


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineNeeds:
    """What a cell needs of the engine."""

    max_num_seqs: int | None = None
    """None leaves the batch-size limit unchanged, and is the default of an engine that starts."""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Its model and flags, by the names that settings of a cell have; empty for those of the run."""
    start: int | None = None
    """The repeat that has a start of its own, from 0; None for any start."""

    def met_by(self, running: EngineNeeds) -> bool:
        """Whether a running engine serves the cell as it is."""
        same = self.settings == running.settings and self.max_num_seqs in (None, running.max_num_seqs)
        return same and self.start in (None, running.start)

    @property
    def of_any_start(self) -> EngineNeeds:
        """The same for any start of the engine."""
        return dataclasses.replace(self, start=None)

    def change_from(self, running: EngineNeeds) -> str:
        """Return what differs from a running engine in words, such as `max_num_seqs 8 → 16`."""
        changes = []
        if self.max_num_seqs not in (None, running.max_num_seqs):
            changes.append(f"max_num_seqs {running.max_num_seqs} → {self.max_num_seqs}")
        if self.settings != running.settings:
            before, after = (settings_label(each) or "as configured" for each in (running.settings, self.settings))
            changes.append(f"{before} → {after}")
        if self.start not in (None, running.start):
            changes.append(f"repeat {(running.start or 0) + 1} → {(self.start or 0) + 1}")
        return ", ".join(changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Consecutive stages under one batch-size limit of the engine, whose requests have the same settings."""

    max_num_seqs: int | None
    """None leaves the engine unchanged."""
    stages: tuple[tuple[int, StageConfig], ...]
    """Each with its index in the run."""
    fresh: bool = False
    """It begins with the prefix cache in the state that the run promises."""
    start: int | None = None
    """The repeat of its cells, if each repeat has a start of the engine of its own."""

    @property
    def needs(self) -> EngineNeeds:
        """What its cells need of the engine."""
        return EngineNeeds(max_num_seqs=self.max_num_seqs, settings=engine_settings(self.settings), start=self.start)

    @property
    def settings(self) -> Mapping[str, Any]:
        """What its cells set besides their load; all of them set the same."""
        return self.stages[0][1].settings


class FreshStarts(Enum):
    """Which stages begin with the prefix cache in a promised state; warm-ups do not."""

    NONE = "none"
    FIRST = "first"
    """The first stage of a load."""
    EACH = "each"
    """Every cell of a sweep."""

    @classmethod
    def of(cls, config: RunConfig) -> FreshStarts:
        """Return the fresh starts that a configuration promises."""
        if config.prefix_cache == AS_IS:
            return cls.NONE
        return cls.EACH if config.drain_at_stages else cls.FIRST


def segments(
    stages: Sequence[StageConfig],
    *,
    first_index: int = 0,
    fresh: FreshStarts = FreshStarts.NONE,
    apart: bool = False,
    restarts: bool = False,
) -> list[Segment]:
    """Split the stages where batch size or settings change, and at fresh starts; numbered from `first_index`.

    With `apart` each stage is a segment; with `restarts` each repeat has a start of the engine of its own.
    """
    found: list[Segment] = []
    after_load = False
    for pair in enumerate(stages, start=first_index):
        stage = pair[1]
        starts = not stage.warmup and (fresh is FreshStarts.EACH or (fresh is FreshStarts.FIRST and not after_load))
        after_load = after_load or not stage.warmup
        start = stage.repeat if restarts else None
        goes_on = bool(found) and found[-1].start == start and _continues(found[-1].stages[-1][1], stage)
        if goes_on and not starts and not apart:
            found[-1] = dataclasses.replace(found[-1], stages=(*found[-1].stages, pair))
        else:
            found.append(Segment(max_num_seqs=stage.max_num_seqs, stages=(pair,), fresh=starts, start=start))
    return found


def _continues(before: StageConfig, stage: StageConfig) -> bool:
    return (before.max_num_seqs, before.settings) == (stage.max_num_seqs, stage.settings)


def with_other_batch(stages: Sequence[StageConfig], max_num_seqs: int) -> list[StageConfig]:
    """The remaining stages, the current one first; those with the batch size of the current one get the new one."""
    current = stages[0].max_num_seqs if stages else None
    return [
        dataclasses.replace(stage, max_num_seqs=max_num_seqs) if stage.max_num_seqs == current else stage
        for stage in stages
    ]


class StagePlan:
    """The planned stages, and which of them each stage number of the run stands for.

    A repeated stage gets a new number, so that the figures of its repetitions are never mixed.
    """

    def __init__(
        self,
        stages: Sequence[StageConfig],
        *,
        first_index: int,
        fresh: FreshStarts = FreshStarts.NONE,
        apart: bool = False,
        restarts: bool = False,
    ) -> None:
        self._plan = list(stages)
        self._fresh = fresh
        self._apart = apart
        self._restarts = restarts
        self._place_of = {first_index + place: place for place in range(len(self._plan))}
        self._next_index = first_index + len(self._plan)

    @property
    def segments(self) -> list[Segment]:
        """All segments, under the first numbers."""
        return self._segments(self._plan, first_index=min(self._place_of, default=0))

    def row(self, stage: StageChange, *, max_num_seqs: int | None) -> StageChange:
        """The row of a stage that a sender reports: with the engine's batch size, and the requests of all senders."""
        batch = max_num_seqs if stage.max_num_seqs is None else stage.max_num_seqs
        planned = self._plan[self._place_of.get(stage.index, 0)]
        return dataclasses.replace(
            stage, max_num_seqs=batch, num_prompts=planned.num_prompts, duration=planned.duration
        )

    def add(self, stage: StageConfig) -> Segment:
        """Add a stage to the end of the plan; return it as a segment that lasts until it is replaced."""
        index = self._next_index
        self._plan.append(stage)
        self._place_of[index] = len(self._plan) - 1
        self._next_index += 1
        return Segment(max_num_seqs=stage.max_num_seqs, stages=((index, dataclasses.replace(stage, duration=None)),))

    def again(self, stage: int, *, max_num_seqs: int) -> list[Segment]:
        """Return the segments from the current stage on, with another batch size."""
        place = self._place_of.get(stage, 0)
        self._plan[place:] = with_other_batch(self._plan[place:], max_num_seqs)
        return self._from(place)

    def before(self, stage: int) -> list[Segment]:
        """Return the segments from the previous stage on; empty if there is none."""
        place = self._place_of.get(stage, 0)
        return self._from(place - 1) if place > 0 else []

    def _from(self, place: int) -> list[Segment]:
        first = self._next_index
        rest = self._plan[place:]
        self._place_of.update((first + offset, place + offset) for offset in range(len(rest)))
        self._next_index += len(rest)
        return self._segments(rest, first_index=first)

    def _segments(self, stages: Sequence[StageConfig], *, first_index: int) -> list[Segment]:
        return segments(stages, first_index=first_index, fresh=self._fresh, apart=self._apart, restarts=self._restarts)
