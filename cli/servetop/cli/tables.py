"""How tables on the terminal look."""

from __future__ import annotations

from rich import box
from rich.console import Group, JustifyMethod
from rich.table import Table
from rich.text import Text


def light_table(*columns: str) -> Table:
    """Light lines, the first column left, numbers right; when it gets narrow, the first column is folded."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        justify: JustifyMethod = "right" if index else "left"
        table.add_column(column, justify=justify, no_wrap=index > 0, overflow="fold")
    return table


def titled(title: str, body: Table | Text) -> Group:
    """With an empty line and a bold title above."""
    return Group(Text(f"\n{title}", style="bold"), body)
