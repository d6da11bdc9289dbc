"""Prints sanitized tables to stdout, with Rich."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from servetop.core.text.sanitize import sanitize_text
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
    """Return a console as wide as the terminal, or without limit if stdout is not one."""
    terminal = SanitizingConsole(highlight=False)
    return terminal if terminal.is_terminal else SanitizingConsole(highlight=False, width=UNLIMITED)
