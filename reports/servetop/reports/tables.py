"""Tables for a terminal, built with Rich; the width is chosen where they are printed."""

from __future__ import annotations

from rich import box
from rich.console import Group, JustifyMethod
from rich.table import Table
from rich.text import Text

from servetop.core.text.sanitize import sanitize_line


def cell(text: object) -> Text:
    """Untrusted text as one line of a table, never parsed as markup."""
    return Text(sanitize_line(str(text)))


def light_table(*columns: str) -> Table:
    """Return a table with light lines: first column left-aligned and folded if space is short, others right-aligned."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        justify: JustifyMethod = "right" if index else "left"
        table.add_column(column, justify=justify, no_wrap=index > 0, overflow="fold")
    return table


def titled(title: str, body: Table | Text) -> Group:
    """Return a table or text below an empty line and a bold title."""
    return Group(Text(f"\n{sanitize_line(title)}", style="bold"), body)
