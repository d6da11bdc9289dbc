"""Selects one of several watched servers, and opens it. Independent of Textual."""

from __future__ import annotations

from servetop.tui.run_viewer import RunViewer
from servetop.tui.state.fleet_state import FleetFrame
from servetop.tui.state.fleet_table import listed_rows
from servetop.tui.state.fleet_view import selected_row


class FleetSelection:
    """Changes which server is selected and which is opened in a viewer's view; both by server, not by row."""

    def __init__(self, viewer: RunViewer) -> None:
        self._viewer = viewer

    @property
    def _table(self) -> FleetFrame | None:
        """The servers at the time shown; None unless their table is shown."""
        fleet, view = self._viewer.run.fleet, self._viewer.view
        if fleet is None or view.opened is not None:
            return None
        return fleet.at(view.playhead.at if view.cursor is None else min(view.cursor.at, view.playhead.at))

    def step(self, rows: int) -> bool:
        """Select the server that many rows further down; False without a table."""
        if (table := self._table) is None:
            return False
        numbers, row = [each.number for each in listed_rows(table)], selected_row(table, self._viewer.view.selected)
        if row is not None:
            place = min(max(numbers.index(row.number) + rows, 0), len(numbers) - 1)
            self._viewer.update_view(selected=numbers[place])
        return True

    def open(self) -> bool:
        """Show the selected server alone; False without a table, or if it has no server."""
        table = self._table
        row = None if table is None else selected_row(table, self._viewer.view.selected)
        if row is not None:
            self._viewer.update_view(opened=row.number, selected=row.number)
        return row is not None

    def close(self) -> bool:
        """Show all servers again; False if they are shown."""
        opened = self._viewer.view.opened is not None
        if opened:
            self._viewer.update_view(opened=None)
        return opened
