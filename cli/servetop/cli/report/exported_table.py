"""The most telling metrics that only the engine knows, as a table on the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group

from servetop.analysis.exported.exported_summary import ExportedMetric
from servetop.analysis.exported.metric_spec import Unit
from servetop.reports.tables import cell, light_table, titled
from servetop.tui.drawing.quantities import value_text

_TELLING = (
    ("Prefix cache", "tokens found externally"),
    ("Speculative decoding", "draft tokens accepted"),
    ("Speculative decoding", "tokens per step"),
    ("Queue and scheduler", "time in the queue"),
    ("Queue and scheduler", "preemptions per request"),
    ("Queue and scheduler", "tokens/iteration, mean"),
    ("Queue and scheduler", "rejected"),
    ("KV offload", "loaded"),
    ("KV transfer (NIXL)", "moved"),
    ("Compute, estimated", "model FLOP/s per GPU"),
    ("Compute, estimated", "MFU"),
    ("Compute, estimated", "MBU"),
    ("Data-parallel ranks", "busiest rank / mean"),
)
"""Group and name; the other metrics are in the JSON form and on screen 7."""


def telling_metrics(metrics: Sequence[ExportedMetric]) -> list[ExportedMetric]:
    """Those of the run's metrics that the table has, if they are known and not 0."""
    return [each for each in metrics if (each.group, each.name) in _TELLING and each.value]


def exported_table(metrics: Sequence[ExportedMetric]) -> Group:
    """One row per metric, in the order of the engine page; a histogram has p50 / p90."""
    table = light_table("", "value (p50 / p90)", "series")
    for each in metrics:
        value = math.nan if each.value is None else each.value
        name = f"{each.name} {each.label or ''}".rstrip()
        bucket = None if each.above is None else (each.above, math.inf if each.up_to is None else each.up_to)
        text = value_text(value, Unit(each.unit), p90=each.p90, at_most=each.at_most or 0.0, bucket=bucket)
        table.add_row(cell(name), text, cell(each.series))
    return titled("The engine's own metrics", table)
