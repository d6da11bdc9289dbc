"""Random engines and loads, and their simulated runs as arms of a comparison."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from servetop.analysis.comparison.alignment import ArmRun
from servetop.core.config import StageConfig
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.load_arm import load_arm_run
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import VirtualRunPlan
from tests.comparisons.load_shapes import LoadShape, shaped
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.machines import draw_base, draw_workload, plan_of
from tests.judgement.recordings import write_recording

_REQUESTS = 600
"""Requests of a run, within the limits of its duration."""
_DURATIONS = (60.0, 240.0)
_COSTS = ("gpu.bandwidth", "gpu.flops", "c0", "c1")
START_SPREAD = 0.01
"""Standard deviation of the speed between starts, where starts differ."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DrawnLoad:
    """One engine under one load."""

    base: ConstantRates
    stage: StageConfig

    def requests(self, seconds: float) -> float:
        """About how many requests the load sends in a time."""
        return seconds * min(self.stage.request_rate, self.base.saturated)

    def plan(self, seed: int, *, slower: float = 1.0, seconds: float | None = None) -> VirtualRunPlan:
        """The plan of a run whose engine takes `slower` times as long for everything."""
        stage = self.stage if seconds is None else dataclasses.replace(self.stage, duration=seconds)
        plan = plan_of(self.base, "run", (stage,))
        config = dataclasses.replace(plan.config, seed=seed)
        settings = {**self.base.settings, **slowed(self.base.spec, slower)} if slower != 1 else self.base.settings
        return dataclasses.replace(plan, config=config, settings=settings)


def slowed(spec: SimSpec, factor: float) -> dict[str, float]:
    """Settings with which each iteration takes `factor` times as long."""
    values = (spec.gpu.bandwidth / factor, spec.gpu.flops / factor, spec.engine.c0 * factor, spec.engine.c1 * factor)
    return dict(zip(_COSTS, values, strict=True))


def draw_load(random: Random, *, closed: bool | None = None, shape: LoadShape | None = None) -> DrawnLoad:
    """Draw an engine, and a closed loop or an open one below saturation; of a shape, an open one."""
    workload = draw_workload(random, inputs=(64, 512), outputs=(32, 256))
    if shape is not None:
        workload = shaped(workload, shape, random)
    base = draw_base(random, workload)
    saturated = base.saturated
    if shape is None and (random.random() < 0.5 if closed is None else closed):
        stage = StageConfig(max_concurrency=random.choice((8, 16, 32, 64)), request_rate=math.inf)
    else:
        highest = 0.85 if shape is None else shape.highest
        stage = StageConfig(request_rate=random.uniform(0.3, highest) * saturated)
    low, high = _DURATIONS
    duration = min(max(_REQUESTS / min(stage.request_rate, saturated), low), high)
    if shape is not None and shape.seconds is not None:
        duration = shape.seconds
    return DrawnLoad(base=base, stage=dataclasses.replace(stage, duration=round(duration)))


def start_effect(random: Random) -> float:
    """Draw how much slower than usual an engine is after one start."""
    return math.exp(random.gauss(0.0, START_SPREAD))


def measured(plan: VirtualRunPlan, name: str) -> ArmRun:
    """Run a plan, record it, and load the recording."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.servetop"
        write_recording(run_virtually(plan), path)
        return dataclasses.replace(loaded(path), name=name)


def loaded(path: Path) -> ArmRun:
    """Load one recording."""
    reader = RecordingReader.open(path)
    try:
        return load_arm_run(reader)
    finally:
        reader.close(merge_log=False)


def arm(plans: Sequence[VirtualRunPlan], name: str) -> list[ArmRun]:
    """Measure several starts of one configuration."""
    return [measured(plan, f"{name}{number}") for number, plan in enumerate(plans)]
