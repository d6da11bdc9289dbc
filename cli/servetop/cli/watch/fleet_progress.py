"""The progress of a watch of several servers: a line when one changes, and the state of all every ten seconds."""

from __future__ import annotations

from pathlib import Path

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.analysis.fleet.server_episodes import SETTLING
from servetop.cli.watch.watch_progress import SECONDS_BETWEEN_LINES, is_printed, line_of
from servetop.core.text import formats
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console
from servetop.tui.state.fleet_state import FleetState

_AT_ONCE = (ReplicaClass.DEAD, ReplicaClass.DRAINING, ReplicaClass.RESTARTED, ReplicaClass.SLOW, ReplicaClass.REMOVED)
"""States that are printed at once; another one has to last for SETTLING."""


class FleetProgress:
    """Follows the growing recording of a watch, as a dashboard does, and prints what happens."""

    def __init__(self, recording: Path) -> None:
        self._reader = RecordingReader.open(recording)
        self._fleet = FleetState()
        self._next = 0.0
        self._shown: dict[int, str] = {}
        self._changing: dict[int, tuple[str, float]] = {}

    def show(self) -> None:
        """Print what is new."""
        before, update = self._fleet.until, self._reader.poll()
        self._fleet.fold(update)
        for note in update.notes:
            if is_printed(note):
                self.print_line(line_of(note))
        if self._fleet.until <= before or self._reader.header.engine is None:
            return
        at = self._fleet.until
        if at < self._next:
            for row in self._fleet.states_at(at):
                self._show_row(row, at)
            return
        self._next = at + SECONDS_BETWEEN_LINES
        frame = self._fleet.at(at)
        for row in frame.rows:
            self._show_row(row, at)
        self.print_line(f"{formats.clock(at)}  {frame.line}")
        if figures := [text for text in (frame.totals, frame.skew) if text]:
            self.print_line(" │ ".join([f"{formats.clock(at)}  all", *figures]))

    def _show_row(self, row: ReplicaRow, at: float) -> None:
        """Print a server whose state is another one than before, and has been for a moment."""
        if self._shown.get(row.number) == row.state or row.kind is ReplicaClass.UNKNOWN:
            self._changing.pop(row.number, None)
            return
        state, since = self._changing.get(row.number, ("", at))
        if state != row.state:
            since = at
        self._changing[row.number] = (row.state, since)
        if row.kind not in _AT_ONCE and at - since < SETTLING:
            return
        first = row.number not in self._shown
        self._shown[row.number] = row.state
        if not first or row.kind is not ReplicaClass.DEAD:  # its note says why it does not respond
            self.print_line(f"{formats.clock(at)}  {_line_of(row)}")

    def print_line(self, line: str) -> None:
        """Print a line at once."""
        console.status(line)

    def close(self) -> None:
        """Print what is new at the end."""
        try:
            self.show()
        finally:
            self._reader.close()


def _line_of(row: ReplicaRow) -> str:
    detail = f": {row.detail}" if row.detail else ""
    return f"{row.name}: {row.state}{detail}"
