"""The load of a stage and the key of its cell come from the stage's own row."""

from __future__ import annotations

import dataclasses

from servetop.analysis.cells.stage_load import CellKey, StageLoad, names_batch, with_plan
from servetop.core.config import RunConfig, StageConfig
from servetop.core.events import StageChange
from servetop.core.interfaces.stage_row import planned_row

RAMP = StageConfig(request_rate=16.0, ramp_from=4.0, ramp_strategy="exponential", duration=6.0, max_num_seqs=64)


def test_the_row_of_a_planned_stage_has_its_ramp_and_its_length() -> None:
    row = planned_row(RAMP, at=3.0, index=7)
    assert (row.at, row.index, row.duration, row.num_prompts) == (3.0, 7, 6.0, None)
    load = StageLoad.of(row)
    assert load.label == "4 to 16 req/s · batch 64"
    assert load.ramp_strategy == "exponential"


def test_a_row_without_a_plan_gets_the_ramp_and_length_of_the_planned_stage_with_its_label() -> None:
    older = StageChange(at=0.0, index=5, label=RAMP.label, request_rate=16.0, max_concurrency=None, max_num_seqs=64)
    plan = (StageConfig(request_rate=16.0, max_num_seqs=64, duration=9.0), RAMP)
    assert with_plan(older, plan) == planned_row(RAMP, index=5)
    assert with_plan(dataclasses.replace(older, label="16 req/s · batch 8"), plan).duration is None


def test_a_cell_without_a_batch_size_has_that_of_the_engine() -> None:
    key = CellKey.of(planned_row(StageConfig(request_rate=8.0, max_num_seqs=256)))
    assert key.covers(StageConfig(request_rate=8.0))
    assert key.covers(StageConfig(request_rate=8.0, max_num_seqs=256))
    assert not key.covers(StageConfig(request_rate=8.0, max_num_seqs=64))
    assert not key.covers(StageConfig(request_rate=8.0, repeat=1))
    assert not key.covers(StageConfig(request_rate=8.0, warmup=True))


def test_the_batch_size_names_loads_where_it_was_planned_or_changed() -> None:
    rows = [planned_row(StageConfig(request_rate=8.0, max_num_seqs=size)) for size in (16, 64)]
    assert names_batch(RunConfig(), rows)
    assert not names_batch(RunConfig(), rows[:1])
    assert names_batch(RunConfig(stages=(StageConfig(max_num_seqs=16),)), rows[:1])
