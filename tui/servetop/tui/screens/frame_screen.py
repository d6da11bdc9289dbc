"""A screen that shows a moment of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.message import Message
from textual.screen import Screen

from servetop.tui.drawing.palette import STYLES
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame


class FrameScreen(Screen[object]):
    """Hands the moment to all panels on it; subclasses compose them.

    The styles of drawings are its component classes: the style sheet is matched with them once, not for every panel.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = set(STYLES)
    AUTO_FOCUS = ""

    def __init__(self, first: Frame, *, classes: Sequence[str] = ()) -> None:
        """`first` is what it shows before anything new comes."""
        super().__init__(classes=" ".join(classes))
        self._first = first

    def on_mount(self) -> None:
        """The first frame is complete."""
        self.show(self._first)

    class Resumed(Message):
        """The screen can be seen again."""

    _covered = False

    def on_screen_suspend(self) -> None:
        """Another screen covers this one, which is not drawn until it is seen again."""
        self._covered = True

    def on_screen_resume(self) -> None:
        """Ask for what happened meanwhile."""
        if self._covered:
            self._covered = False
            self.post_message(self.Resumed())

    def show(self, frame: Frame) -> None:
        """Draw this moment."""
        for panel in self.query(Panel):
            panel.frame = frame
