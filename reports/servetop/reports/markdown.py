"""Markdown from values: untrusted text on one line, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from servetop.core.text.sanitize import sanitize_line

_SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\`*_[]<>|#~"})
"""Characters with a meaning in Markdown."""


def escaped(text: object) -> str:
    """Return untrusted text on one line, in which no character formats."""
    return sanitize_line(str(text)).translate(_SPECIAL)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, align: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of a table of Markdown; `align` has one of `:--`, `--:` and `---` for each column."""
    for line in (columns, align or ["---"] * len(columns), *rows):
        yield f"| {' | '.join(line)} |"
