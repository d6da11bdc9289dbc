"""Selecting a panel of the grid, and maximising it."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.widget import Widget

from servetop.tui.keys import hidden_bindings
from servetop.tui.panels.live.timeline import TimelinePanel
from servetop.tui.panels.panel import Panel
from servetop.tui.screens.frame_screen import FrameScreen

_MAXIMISED = "-maximised"


class PanelFocus(FrameScreen):
    """Tab or a click selects a panel (the focus), Enter or a double click maximises it, Escape restores the grid."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *hidden_bindings(
            ("tab", "next_panel(1)", "next panel"),
            ("shift+tab", "next_panel(-1)", "previous panel"),
            ("enter", "maximise", "maximise"),
            ("escape", "bring_back", "back"),
        )
    ]

    def on_mount(self) -> None:
        # a click on the timeline seeks, so that panel cannot be selected
        for panel in self.query("#panels > Panel"):
            panel.can_focus = not isinstance(panel, TimelinePanel)

    def action_next_panel(self, direction: int) -> None:
        """Select the next (1) or previous (-1) panel; maximises it if the current one is maximised."""
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
        """Maximise the selected panel, or restore the grid; selects the first panel if there is no selection."""
        if self.has_class(_MAXIMISED):
            self._bring_back()
            return
        if self.focused is None:
            self._choose(1)
        if self.focused is not None:
            self.add_class(_MAXIMISED)
            self.focused.add_class(_MAXIMISED)

    def action_bring_back(self) -> None:
        """Restore the grid; if no panel is maximised, Escape has its other meaning."""
        if not self.has_class(_MAXIMISED):
            raise SkipAction
        self._bring_back()

    def _bring_back(self) -> None:
        self.remove_class(_MAXIMISED)
        self.query(f".{_MAXIMISED}").remove_class(_MAXIMISED)

    def on_click(self, event: events.Click) -> None:
        if event.chain == 2 and _panel_of(event.widget) is self.focused and self.focused is not None:
            self.action_maximise()


def _panel_of(widget: Widget | None) -> Panel | None:
    return widget if isinstance(widget, Panel) else None
