"""Prints sanitized tables to stdout, with Rich."""

from __future__ import annotations

import io
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
"""Width if stdout is not a terminal, so that lines in a file or pipe are neither cut nor folded."""


class SanitizingConsole(Console):
    """Rich's console, which writes no escape sequences but Rich's own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render with unprintable characters removed from all text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(sanitize_text(segment.text), segment.style)


def out_tables(*renderables: RenderableType) -> None:
    """Print tables and texts to stdout."""
    _print(stdout_console(), renderables)


def out_first_that_fits(*tables: Table) -> None:
    """Print the first table that fits the terminal, widest first, or else the last one, without cutting it."""
    width, unlimited = stdout_console().width, SanitizingConsole(highlight=False, width=UNLIMITED)
    fitting = (table for table in tables if unlimited.measure(table).maximum <= width)
    _print(unlimited, [next(fitting, tables[-1])])


class _Page(io.StringIO):
    """Text in memory with the properties of stdout, from which Rich chooses its characters and colours."""

    def isatty(self) -> bool:
        """Whether stdout is a terminal."""
        return sys.stdout is not None and sys.stdout.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of stdout."""
        return console.encoding()


def _print(target: SanitizingConsole, renderables: Iterable[RenderableType]) -> None:
    page = _Page()
    target.file = page  # Rich's own capture flushes stdout, which may be full
    for each in renderables:
        target.print(each)
    text = page.getvalue()
    if not target.is_terminal:
        text = "".join(f"{line.rstrip(' ')}\n" for line in text.split("\n")[:-1])
    console.write(sys.stdout, text)


def stdout_console() -> SanitizingConsole:
    """A console as wide as the terminal, or without limit if stdout is not one."""
    terminal = SanitizingConsole(highlight=False)
    return terminal if terminal.is_terminal else SanitizingConsole(highlight=False, width=UNLIMITED)


def cell(text: object) -> Text:
    """Untrusted text as one line of a table, never parsed as markup."""
    return Text(sanitize_line(str(text)))


def light_table(*columns: str) -> Table:
    """A table with light lines: first column left-aligned and folded if space is short, others right-aligned."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        justify: JustifyMethod = "right" if index else "left"
        table.add_column(column, justify=justify, no_wrap=index > 0, overflow="fold")
    return table


def titled(title: str, body: Table | Text) -> Group:
    """A table or text below an empty line and a bold title."""
    return Group(Text(f"\n{sanitize_line(title)}", style="bold"), body)
