"""The seeds of a stage's random draws: functions of the run's seed and of the load, not of the place in the plan.

Cells of a sweep with equal loads and settings send equal requests (common random numbers), in whatever order they run,
and also in a sweep that is resumed; cells with other settings have the same draws for other requests.
docs/decisions/024-draws-of-a-cell.md has the reasons.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from servetop.core.config import RANDOM, RunConfig, StageConfig, WorkloadConfig
from servetop.core.config_values.cell_settings import settings_text
from servetop.core.config_values.cell_workload import cell_workload

Stream = tuple[tuple[int, ...], int | None]
"""Identity of a prompt stream: its seed and its salt."""
_ARRIVALS = 0xA221
_BYTES = 6
"""Size of a digest: JSON readers that have only floating-point numbers keep it exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDraws:
    """What fixes the requests of one stage."""

    arrivals: tuple[int, ...]
    """Seed of the due times."""
    prompts: tuple[int, ...] = (0, 0)
    """Seed of the prompts."""
    salt: int | None = None
    """Alters the beginning of each prompt, so that cells with equal draws find nothing of each other in a cache."""
    key: int | None = None
    """Identifies the stage's own prompt stream in the recording; None: the stages of the run share one stream."""
    workload: WorkloadConfig | None = None
    """The requests of a cell that has settings of its own; None: those of the run."""

    @property
    def stream(self) -> Stream:
        """Identity of the prompt stream: it continues in a following stage with the same one."""
        return self.prompts, self.salt


class DrawSeeds:
    """Seeds the stages of one run in the order in which they are planned to start."""

    def __init__(self, workload: WorkloadConfig, *, seed: int, sweep: bool) -> None:
        """With `sweep` each stage has a prompt stream of its own; a dataset is read from its beginning."""
        self._seed = seed
        self._sweep = sweep
        self._workload = workload
        self._begun: Counter[tuple[object, ...]] = Counter()

    @classmethod
    def of(cls, config: RunConfig) -> DrawSeeds:
        """Return the seeds of a run; those of a sweep if its stages drain."""
        return cls(config.workload, seed=config.seed, sweep=config.drain_at_stages)

    def plan(self, segments: Iterable[tuple[int, StageConfig]]) -> Mapping[int, StageDraws]:
        """Return the draws of these stages by index."""
        return {index: self.next(stage) for index, stage in segments}

    def next(self, stage: StageConfig) -> StageDraws:
        """Return the draws of a stage; those of a load that comes again are new, like those of a repeat."""
        load, settings = load_of(stage), settings_text(stage.settings)
        cell = (load, stage.max_num_seqs if self._sweep else None, settings)
        occurrence, self._begun[cell] = self._begun[cell], self._begun[cell] + 1
        key, seed = _digest(*load, occurrence), int(stage.settings.get("seed", self._seed))
        arrivals = (seed, key, _ARRIVALS)
        if not self._sweep:
            return StageDraws(arrivals=arrivals, prompts=(seed, 0))
        workload = cell_workload(self._workload, stage.settings)
        engine = stage.max_num_seqs if settings is None else (stage.max_num_seqs, settings)
        return StageDraws(
            arrivals=arrivals,
            prompts=(seed, key),
            salt=_digest(seed, key, engine) if workload.dataset not in RANDOM or engine is not None else None,
            key=key if settings is None else _digest(key, settings),
            workload=None if settings is None else workload,
        )


def load_of(stage: StageConfig) -> tuple[object, ...]:
    """What the draws of a stage depend on: its load and its repeat, but neither its length nor the batch size."""
    ramp = None if stage.ramp_from is None else (float(stage.ramp_from), stage.ramp_strategy)
    return float(stage.request_rate), ramp, stage.max_concurrency, stage.repeat, stage.warmup


def _digest(*values: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(values).encode(), digest_size=_BYTES).digest(), "big")
