"""Choosing one of the panels on the grid, and giving it the whole screen."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.widget import Widget

from servetop.tui.panels.live.timeline import TimelinePanel
from servetop.tui.panels.panel import Panel
from servetop.tui.screens.frame_screen import FrameScreen

_MAXIMISED = "-maximised"


class PanelFocus(FrameScreen):
    """Tab or a click chooses a panel (the focus), enter or a double click maximises it, escape brings all back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "next_panel(1)", "next panel", show=False),
        Binding("shift+tab", "next_panel(-1)", "panel before", show=False),
        Binding("enter", "maximise", "maximise", show=False),
        Binding("escape", "bring_back", "back", show=False),
    ]

    def on_mount(self) -> None:
        """All panels but the time line, where a click means an instant, can be chosen."""
        for panel in self.query("#panels > Panel"):
            panel.can_focus = not isinstance(panel, TimelinePanel)

    def action_next_panel(self, direction: int) -> None:
        """Choose the next (1) or the one before (-1); a maximised panel makes way for it."""
        maximised = self.has_class(_MAXIMISED)
        if maximised:
            self._bring_back()
        self._choose(direction)
        if maximised:
            self.call_after_refresh(self.action_maximise)

    def _choose(self, direction: int) -> None:
        shown = [panel for panel in self.query("#panels > Panel") if panel.can_focus and panel.display]
        if not shown:
            return
        after = shown.index(self.focused) + direction if self.focused in shown else min(direction, 0)
        self.set_focus(shown[after % len(shown)])

    def action_maximise(self) -> None:
        """The chosen panel alone, or all again; without a chosen one, the first."""
        if self.has_class(_MAXIMISED):
            self._bring_back()
            return
        if self.focused is None:
            self._choose(1)
        if self.focused is not None:
            self.add_class(_MAXIMISED)
            self.focused.add_class(_MAXIMISED)

    def action_bring_back(self) -> None:
        """All panels again; when they are there already, escape means something else."""
        if not self.has_class(_MAXIMISED):
            raise SkipAction
        self._bring_back()

    def _bring_back(self) -> None:
        self.remove_class(_MAXIMISED)
        self.query(f".{_MAXIMISED}").remove_class(_MAXIMISED)

    def on_click(self, event: events.Click) -> None:
        """A double click on a panel maximises it, and brings all back."""
        if event.chain == 2 and _panel_of(event.widget) is self.focused and self.focused is not None:
            self.action_maximise()


def _panel_of(widget: Widget | None) -> Panel | None:
    return widget if isinstance(widget, Panel) else None
