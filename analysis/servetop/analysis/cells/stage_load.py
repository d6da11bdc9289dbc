"""The load of a stage, and the key of the cell that it measures."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.config import RunConfig, StageConfig
from servetop.core.config_values.cell_settings import settings_label
from servetop.core.events import StageChange
from servetop.core.interfaces.stage_row import planned_row

LINEAR = "linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLoad:
    """The load of a stage; stages with equal loads are comparable."""

    request_rate: float
    """Requests/s; inf for a closed loop."""
    ramp_from: float | None = None
    """Rate at the beginning of a ramp, or of a part of one; None for a constant rate."""
    ramp_strategy: str = LINEAR
    """`linear` or `exponential`."""
    max_concurrency: int | None = None
    max_num_seqs: int | None = None
    settings: str | None = None
    """What a cell of a sweep sets besides, as JSON (`core.config_values.cell_settings`)."""
    steered: str = ""
    """How commands changed it, as in `rate 3 to 27.9 req/s`; empty for the load as planned."""

    @classmethod
    def of(cls, stage: StageChange) -> StageLoad:
        """Return the load of a stage, from its row alone; its number is not its place in the plan."""
        return cls(
            request_rate=math.inf if stage.request_rate is None else stage.request_rate,
            ramp_from=stage.ramp_from,
            ramp_strategy=stage.ramp_strategy or LINEAR,
            max_concurrency=stage.max_concurrency,
            max_num_seqs=stage.max_num_seqs,
            settings=stage.settings,
        )

    @property
    def label(self) -> str:
        """Short name, such as `8 req/s · conc. 64`."""
        rate = "as fast as possible" if math.isinf(self.request_rate) else f"{round(self.request_rate, 2):g} req/s"
        parts = [rate if self.ramp_from is None else f"{round(self.ramp_from, 2):g} to {rate}"]
        if self.max_concurrency is not None:
            parts.append(f"conc. {self.max_concurrency}")
        if self.max_num_seqs is not None:
            parts.append(f"batch {self.max_num_seqs}")
        parts += filter(None, [settings_label(self.settings)])
        return " · ".join(parts) + (f" ({self.steered})" if self.steered else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellKey:
    """What identifies a cell: stages with equal keys are attempts at the same measurement."""

    load: StageLoad
    repeat: int = 0
    warmup: bool = False

    @classmethod
    def of(cls, stage: StageChange) -> CellKey:
        """Return the key of the cell that a stage measures."""
        return cls(load=StageLoad.of(stage), repeat=stage.repeat, warmup=stage.warmup)

    def covers(self, cell: StageConfig) -> bool:
        """Whether it is the key of a planned cell; one without a batch size has the engine's."""
        planned = CellKey.of(planned_row(cell))
        if cell.max_num_seqs is not None:
            return self == planned
        return dataclasses.replace(self, load=dataclasses.replace(self.load, max_num_seqs=None)) == planned


def with_plan(stage: StageChange, plan: Sequence[StageConfig]) -> StageChange:
    """Return the row of a stage with its ramp and planned length, which recordings before format 1.9 do not have.

    They are those of the planned stage with the same label, which names rate, ramp, batch size and concurrency.
    """
    if stage.request_rate is None or stage.duration is not None or stage.num_prompts is not None:
        return stage
    same = [each for each in plan if (each.label, each.repeat) == (stage.label, stage.repeat)]
    if not same:
        return stage
    planned = planned_row(same[0])
    names = ("ramp_from", "ramp_strategy", "duration", "num_prompts")
    return dataclasses.replace(stage, **{name: getattr(planned, name) for name in names})


def names_batch(config: RunConfig, stages: Sequence[StageChange]) -> bool:
    """Whether the batch size tells the loads of a run apart: it was planned, or it changed."""
    sizes = {stage.max_num_seqs for stage in stages if stage.request_rate is not None}
    return len(sizes) > 1 or any(stage.max_num_seqs is not None for stage in config.stages)
