"""The private attributes of Textual and Rich that servetop uses; no other module may touch one.

tests/tui/test_textual_seam.py states what each must do: run it after an upgrade of either.
"""

from __future__ import annotations

from rich.segment import Segment
from textual._styles_cache import StylesCache
from textual.content import Content
from textual.widget import Widget

CLEAR_CACHE_SECONDS = 60.0
"""Between two calls of `clear_text_cache`; a dashboard draws about two new texts a second."""


def titles_of(widget: Widget) -> tuple[Content | None, Content | None]:
    """Return the contents of the top and bottom border, with their styles."""
    return widget._border_title, widget._border_subtitle


def set_titles(widget: Widget, title: Content, subtitle: Content) -> None:
    """Set the contents of the top and bottom border without a repaint; `border_title` repaints the whole widget."""
    widget._border_title, widget._border_subtitle = title, subtitle


def clear_text_cache() -> None:
    """Empty Rich's cache of split texts, which keeps the last 16,384; numbers that change are rarely drawn again."""
    clear = getattr(getattr(Segment, "_split_cells", None), "cache_clear", None)
    if clear is not None:
        clear()


def forget_removed_widgets() -> None:
    """Empty Textual's cache of border colours, whose last 1,024 keys keep the drawn lines of widgets after their end.

    They are what a full garbage collection takes longest for.
    """
    clear = getattr(getattr(StylesCache, "get_inner_outer", None), "cache_clear", None)
    if clear is not None:
        clear()
