"""The GPUs' energy in the tables of a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servetop.tui.drawing import formats

Summary = Mapping[str, Any]

NEARLY_ALL = 0.99
"""Share of the time for which the energy has to be known to be shown without a remark."""


def energy_rows(summary: Summary) -> list[tuple[str, str]]:
    """A name and a value for the table of totals; none when no GPU told its energy or power."""
    energy = summary.get("energy") or {}
    if energy.get("joules") is None:
        return []
    gpus = "GPU" if energy["gpus"] == 1 else f"{energy['gpus']} GPUs"
    per_token, per_request = energy["joules_per_output_token"], energy["joules_per_request"]
    known = energy["known_share"]
    remark = f" ({formats.percent(known)} of the time)" if known < NEARLY_ALL else ""
    return [
        (f"Energy of the {gpus}", f"{formats.joules(energy['joules'])}, by {energy['source']}{remark}"),
        ("Energy per token / request", f"{formats.joules(per_token)} / {formats.joules(per_request)}"),
        (f"Mean power of the {gpus}", f"{formats.number(energy['mean_power'])} W"),
    ]


def has_energy(stages: Sequence[Summary]) -> bool:
    """A table of stages needs a column for it."""
    return any(millijoules_per_token(stage) is not None for stage in stages)


def millijoules_per_token(summary: Summary) -> float | None:
    """Of a run, a stage or a steady window; None where it is not known."""
    value: float | None = (summary.get("energy") or {}).get("joules_per_output_token")
    return None if value is None else value * 1e3
