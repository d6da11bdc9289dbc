"""Reads the exact figures of a sweep in a thread, for its matrix and its story."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from servetop.analysis.summary.measured_sweep import is_sweep
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.errors import ServetopError
from servetop.tui.run_viewer import RunViewer
from servetop.tui.state.checked_cells import ended_stages
from servetop.tui.state.run_state import RunState

POLL_SECONDS = 0.2
"""Between two looks whether the run on the screen is a sweep with something to read."""
ReadSweep = Callable[[Path], SweepVerdict | None]


async def load_sweeps(viewer: RunViewer, read: ReadSweep) -> None:
    """Show the verdict of each sweep on the screen once it has ended; errors become messages.

    While a sweep runs whose cells have thresholds, it is also read whenever a cell has ended.
    """
    read_of: tuple[RunState, int] | None = None
    while True:
        run, path = viewer.run, viewer.path
        if run.awaits_sweep and path is not None:
            cells = run, len(ended_stages(run.stages))
            if run.end is not None:
                await _load(viewer, run, path, read)
                run.awaits_sweep = False
                viewer.update_view()
            elif run.header.config.cell_thresholds and cells[1] and cells != read_of:
                read_of = cells
                await _load(viewer, run, path, read)
                viewer.update_view()
        await asyncio.sleep(POLL_SECONDS)


async def _load(viewer: RunViewer, run: RunState, path: Path, read: ReadSweep) -> None:
    if is_sweep(run.header.config, run.stages):
        try:
            run.sweep = await asyncio.to_thread(read, path)
        except ServetopError as error:
            viewer.show_message(f"no exact figures of the cells: {error}")
