"""Reads the exact figures of a sweep that has ended, in a thread, for its matrix and its story."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from servetop.analysis.summary.measured_sweep import is_sweep
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.errors import ServetopError
from servetop.tui.run_viewer import RunViewer

POLL_SECONDS = 0.2
"""Between two looks whether the run on the screen is a sweep that has ended."""


async def load_sweeps(viewer: RunViewer, read: Callable[[Path], SweepVerdict | None]) -> None:
    """Show the verdict of each sweep on the screen once it has ended; errors become messages."""
    while True:
        run, path = viewer.run, viewer.path
        if run.awaits_sweep and run.end is not None and path is not None:
            if is_sweep(run.header.config, run.stages):
                try:
                    run.sweep = await asyncio.to_thread(read, path)
                except ServetopError as error:
                    viewer.show_message(f"no exact figures of the cells: {error}")
            run.awaits_sweep = False
            viewer.update_view()
        await asyncio.sleep(POLL_SECONDS)
