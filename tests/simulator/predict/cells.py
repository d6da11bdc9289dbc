"""Predictions of single cells, for tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.predict.predict import PredictSpec, predict
from servetop.simulator.predict.prediction import CellResult


def spec_of(*, label: str = "", model: str = "opt-125m", stage: StageConfig | None = None, **keys: Any) -> PredictSpec:
    """One cell; the settings are fields of PredictSpec, StageConfig or WorkloadConfig."""
    own = {each.name for each in dataclasses.fields(PredictSpec)}
    of_stage = {each.name for each in dataclasses.fields(StageConfig)}
    stage_keys = {"num_prompts": 40, **{key: value for key, value in keys.items() if key in of_stage}}
    workload = {key: value for key, value in keys.items() if key not in own | of_stage}
    return PredictSpec(
        label=label,
        model=model,
        stages=(stage or StageConfig(**stage_keys),),
        workload=WorkloadConfig(**workload),
        **{key: value for key, value in keys.items() if key in own},
    )


def results(specs: Iterable[PredictSpec]) -> list[CellResult]:
    """The results of all cells, none of which may fail to start."""
    return [cell.require_result() for cell in predict(specs).cells]


def result_of(**keys: Any) -> CellResult:
    (result,) = results([spec_of(**keys)])
    return result


def stored(folder: Path, text: str) -> str:
    file = folder / "grid.toml"
    file.write_text(text)
    return str(file)
