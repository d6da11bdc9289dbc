"""The base class of modal screens, and the text on them."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType
from textual.visual import VisualType
from textual.widgets import Static

from servetop.core.text.sanitize import sanitize_text


class Modal(ModalScreen[ScreenResultType]):
    """Closes once: keys typed before it disappeared do not close the screen below."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close with a result; no effect if it is closed already."""
        return super().dismiss(result) if self.is_current else AwaitComplete()


class PlainText(Static):
    """Static text, sanitized and never parsed as markup: it may contain error messages, file names and model ids."""

    def __init__(self, text: str = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(sanitize_text(text), id=id, classes=classes, markup=False)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        super().update(sanitize_text(str(content)), layout=layout)
