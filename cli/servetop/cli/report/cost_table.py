"""Costs in the tables of a summary."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from servetop.analysis.summary.summary_types import StageSummary
from servetop.reports.summary.cost_texts import COST_COLUMNS, stage_costs
from servetop.reports.tables import cell, light_table, titled


def cost_table(stages: Sequence[StageSummary]) -> Group | None:
    """Return one row for each stage: its costs, in its steady window if it has one; None without a price."""
    found = stage_costs(stages)
    if found is None:
        return None
    table = light_table(*COST_COLUMNS)
    for row in found.rows:
        table.add_row(*map(cell, row))
    return titled(found.title, table)
