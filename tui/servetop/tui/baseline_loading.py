"""Reads the baseline in a thread after the first frame, and again from time to time while its run is live."""

from __future__ import annotations

import asyncio

from servetop.core.errors import ServetopError
from servetop.tui.options import OpenBaseline
from servetop.tui.run_viewer import RunViewer
from servetop.tui.state.baseline_run import BaselineReader

READ_AGAIN_SECONDS = 10.0
"""Between two reads of a baseline whose run is live."""


async def load_baseline(viewer: RunViewer, open_baseline: OpenBaseline) -> None:
    """Show the baseline once it is read; one that cannot be read is a message, and the run is shown without it."""
    try:
        with await asyncio.to_thread(open_baseline) as source:
            reader = BaselineReader(source)
            baseline = await asyncio.to_thread(reader.read)
            viewer.compare_with(baseline)
            while baseline.live:
                await asyncio.sleep(READ_AGAIN_SECONDS)
                baseline = await asyncio.to_thread(reader.read)
                viewer.compare_with(baseline)
    except ServetopError as error:
        viewer.show_message(f"no baseline: {error}")
