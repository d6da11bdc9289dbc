"""The GPUs' energy in the tables of a summary."""

from __future__ import annotations

from servetop.analysis.summary.summary_types import EnergySummary
from servetop.core.text import formats

NEARLY_ALL = 0.99
"""Share of the time for which the energy must be known to be shown without a remark."""


def energy_rows(energy: EnergySummary) -> list[tuple[str, str]]:
    """Names and values for the table of totals; none if no GPU reported its energy or power."""
    known = energy.known_share
    if energy.joules is None or known is None:
        return []
    gpus = "GPU" if energy.gpus == 1 else f"{energy.gpus} GPUs"
    remark = f" ({formats.percent(known)} of the time)" if known < NEARLY_ALL else ""
    each = (energy.joules_per_output_token, energy.joules_per_request)
    return [
        (f"Energy of the {gpus}", f"{formats.joules(energy.joules)}, by {energy.source}{remark}"),
        ("Energy per token / request", " / ".join(map(formats.joules, each))),
        (f"Mean power of the {gpus}", f"{formats.number(energy.mean_power)} W"),
    ]
