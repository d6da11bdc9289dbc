"""Text on a screen that is no panel."""

from __future__ import annotations

from textual.visual import VisualType
from textual.widgets import Static

from servetop.core.text.sanitize import sanitize_text


class PlainText(Static):
    """A static text, sanitized and never read as markup: error messages, file names and model ids may be part of it."""

    def __init__(self, text: str = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(sanitize_text(text), id=id, classes=classes, markup=False)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show another text."""
        super().update(sanitize_text(str(content)), layout=layout)
