"""How tables on the terminal look, and how they get there."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich import box
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from servetop.core.text.sanitize import sanitize_line, sanitize_text
from servetop.run import console

UNLIMITED = 10_000
"""Columns where stdout is no terminal: what goes into a file or a pipe is neither cut off nor folded."""


class SanitizingConsole(Console):
    """Rich's console, of which only Rich's own escape sequences come out."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of what is drawn; texts have lost what is not printable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(sanitize_text(segment.text), segment.style)


def out_tables(*renderables: RenderableType) -> None:
    """Tables and texts on stdout."""
    _draw(stdout_console(), renderables)


def out_first_that_fits(*tables: Table) -> None:
    """One of several forms of a table on stdout, widest first; the last one as wide as it is, never cut off."""
    width, unlimited = stdout_console().width, SanitizingConsole(highlight=False, width=UNLIMITED)
    fitting = (table for table in tables if unlimited.measure(table).maximum <= width)
    _draw(unlimited, [next(fitting, tables[-1])])


def _draw(drawn: SanitizingConsole, renderables: Iterable[RenderableType]) -> None:
    with drawn.capture() as captured:
        for each in renderables:
            drawn.print(each)
    text = captured.get()
    if not drawn.is_terminal:
        text = "".join(f"{line.rstrip(' ')}\n" for line in text.split("\n")[:-1])
    console.write(sys.stdout, text)


def stdout_console() -> SanitizingConsole:
    """As wide as the terminal, or without limit."""
    found = SanitizingConsole(highlight=False)
    return found if found.is_terminal else SanitizingConsole(highlight=False, width=UNLIMITED)


def cell(text: object) -> Text:
    """Text from outside as one line of a table, never read as markup."""
    return Text(sanitize_line(str(text)))


def light_table(*columns: str) -> Table:
    """Light lines, the first column left, numbers right; when it gets narrow, the first column is folded."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        justify: JustifyMethod = "right" if index else "left"
        table.add_column(column, justify=justify, no_wrap=index > 0, overflow="fold")
    return table


def titled(title: str, body: Table | Text) -> Group:
    """With an empty line and a bold title above."""
    return Group(Text(f"\n{sanitize_line(title)}", style="bold"), body)
