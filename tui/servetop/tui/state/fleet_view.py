"""The frames of a watch: of all servers with one of them selected, or of one that is opened."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from servetop.analysis.fleet.replica_row import ReplicaRow
from servetop.tui.state.fleet_state import FleetFrame
from servetop.tui.state.fleet_table import fleet_rows, listed_rows
from servetop.tui.state.frame import Frame, View
from servetop.tui.state.replica_run import ReplicaRun
from servetop.tui.state.run_state import RunState


class FleetView:
    """Makes the frames of a run; only those of a watch of several servers differ from the run's own."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._opened: dict[int, ReplicaRun] = {}

    def at(self, view: View, *, live: bool) -> Frame:
        """Return the frame at the view's playhead, of the server that is opened if one is."""
        if view.opened is not None and (opened := self.replica(view.opened)) is not None:
            return opened.at(view, live=live)
        frame = self._run.at(view, live=live)
        if self._run.fleet is None:
            return frame
        fleet = self._run.fleet.at(frame.stats.at if frame.pointed is None else frame.pointed.at)
        selected = selected_row(fleet, view.selected)
        frame = replace(frame, fleet=fleet, selected=selected, replicas=partial(fleet_rows, fleet))
        return self._with_page(frame, view)

    def shown_run(self, view: View) -> RunState:
        """Return the run whose events and episodes are shown."""
        opened = None if view.opened is None else self.replica(view.opened)
        return self._run if opened is None else opened

    def replica(self, number: int) -> ReplicaRun | None:
        """Return a server as a run of its own; None if the watch has none of that number."""
        if number not in self._opened and self._run.fleet is not None:
            if (judged := self._run.fleet.replica(number)) is None:
                return None
            self._opened[number] = ReplicaRun(self._run, judged)
        return self._opened.get(number)

    def _with_page(self, frame: Frame, view: View) -> Frame:
        """Return the frame with the engine page of the selected server, as all of them together have none."""
        replica = None if frame.selected is None else self.replica(frame.selected.number)
        return frame if replica is None else replace(frame, engine_page=replica.engine_page_at(view))


def selected_row(fleet: FleetFrame, number: int | None) -> ReplicaRow | None:
    """Return the selected server, or the one that hurts most if it is not listed; None if none is."""
    rows = listed_rows(fleet)
    return next((row for row in rows if row.number == number), rows[0] if rows else None)
