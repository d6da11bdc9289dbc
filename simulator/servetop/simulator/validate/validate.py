"""Predicts the presets with published measurements and compares the results with the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from servetop.simulator.predict.predict import PredictSpec, predict
from servetop.simulator.validate.fixed_length_tables import table4, table5, table14
from servetop.simulator.validate.sharegpt_tables import labelled, table8, table11, table12, table13
from servetop.simulator.validate.validation_tables import Cells, Table

Preset = Callable[[str], Iterable[PredictSpec]]
"""Function that returns the predictions of the preset with a name."""


def validate(preset: Preset) -> list[Table]:
    """Return all tables; `validation_tables` renders them as JSON and Markdown."""
    cells_13b = _cells_of(preset, "whitepaper-5")
    return [
        table4(_cells_of(preset, "whitepaper-1-vllm")),
        table14(_cells_of(preset, "whitepaper-2")),
        table5(_cells_of(preset, "whitepaper-1-tensorrt-llm")),
        table8(_cells_of(preset, "whitepaper-3")),
        table11(labelled(cells_13b, "table 11: tensorrt-llm")),
        table12(labelled(cells_13b, "table 12: vllm")),
        table13(labelled(cells_13b, "table 13: vllm"), labelled(cells_13b, "table 13: tgi")),
    ]


def _cells_of(preset: Preset, name: str) -> Cells:
    return predict(preset(name)).cells
