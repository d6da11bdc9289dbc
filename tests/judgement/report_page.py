"""Prints what a judge finds, and writes it into a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)  # noqa: T201


def share_text(values: Sequence[bool]) -> str:
    """Return the share of values that are true in whole percent; a dash without any."""
    return f"{100 * sum(values) / len(values):.0f} %" if values else "–"


def write_between_marks(page: Path, lines: Sequence[str], *, mark: str) -> None:
    """Replace what is between the two marks of a page."""
    before, _, after = page.read_text(encoding="utf-8").split(mark, 2)
    page.write_text("\n".join([f"{before}{mark}", "", *lines, "", f"{mark}{after}"]), encoding="utf-8")
