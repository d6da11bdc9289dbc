"""Why requests failed, as a table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group

from servetop.cli.tables import cell, light_table, titled
from servetop.tui.drawing import formats


def failures_table(failures: Sequence[Mapping[str, Any]]) -> Group:
    """The most frequent reason first; a reason is a server's words, so it is a table cell of plain text."""
    table = light_table("", "requests", "first at")
    for each in failures:
        at = formats.UNKNOWN if each["first_at"] is None else formats.minutes(each["first_at"])
        table.add_row(cell(each["reason"]), formats.exact(each["count"]), at)
    return titled("Failures", table)
