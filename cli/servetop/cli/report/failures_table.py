"""Why requests failed, as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from servetop.analysis.failure_reasons import Failure
from servetop.core.text import formats
from servetop.reports.tables import cell, light_table, titled


def failures_table(failures: Sequence[Failure]) -> Group:
    """The most frequent reason first; reasons may quote a server, so they are cells of plain text."""
    table = light_table("", "requests", "first at")
    for each in failures:
        at = formats.UNKNOWN if each.first_at is None else formats.clock(each.first_at)
        table.add_row(cell(each.reason), formats.exact(each.count), at)
    return titled("Failures", table)
