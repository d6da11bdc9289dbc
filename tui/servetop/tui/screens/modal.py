"""What screens that lie over the others have in common."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType


class Modal(ModalScreen[ScreenResultType]):
    """Closes once: keys that were typed before it was gone do not close the screen below."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close with a result; nothing once it is closed."""
        return super().dismiss(result) if self.is_current else AwaitComplete()
