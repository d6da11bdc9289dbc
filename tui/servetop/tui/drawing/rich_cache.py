"""Texts that were drawn once and are kept by Rich, although figures that change are hardly ever drawn again."""

from __future__ import annotations

from rich.segment import Segment

FORGET_SECONDS = 60.0
"""Between two calls; a dashboard draws about two new texts a second."""


def forget_drawn_text() -> None:
    """Empty Rich's cache of texts that were cut in two: it keeps the last 16,384."""
    forget = getattr(getattr(Segment, "_split_cells", None), "cache_clear", None)
    if forget is not None:  # another version of Rich may have none
        forget()
