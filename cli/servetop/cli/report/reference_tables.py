"""The cells of a sweep, published, measured and simulated side by side, on the terminal and as Markdown."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.text.sanitize import sanitize_line
from servetop.reports import markdown
from servetop.reports.summary.reference_texts import reference_texts
from servetop.reports.tables import cell, light_table, titled


def reference_tables(sweep: SweepVerdict) -> list[Group]:
    """Return one row for each cell with its published, measured and simulated figures. No table without any."""
    groups = []
    for found in reference_texts(sweep):
        table = light_table(*found.columns)
        for name, *figures in found.rows:
            table.add_row(cell(name), *map(cell, figures))
        notes = [Text(sanitize_line(note)) for note in found.notes]
        groups.append(Group(titled(found.title, table), *notes))
    return groups


def reference_markdown(sweep: SweepVerdict) -> list[str]:
    """Return the same tables as Markdown, each with its title."""
    lines: list[str] = []
    for found in reference_texts(sweep):
        rows = [[markdown.escaped(text) for text in row] for row in found.rows]
        align = [":--", *["--:"] * (len(found.columns) - 1)]
        heads = [head.replace("\n", " ") for head in found.columns]
        lines += ["", found.title, "", *markdown.table(heads, rows, align=align)]
        lines += [text for note in found.notes for text in ("", markdown.escaped(note))]
    return lines
