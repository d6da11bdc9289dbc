"""The files that keys write: a picture of the screen, and the report of the recording on it."""

from __future__ import annotations

import asyncio

from servetop.core.errors import ServetopError
from servetop.core.text import formats
from servetop.tui.drawing.screen_picture import portable
from servetop.tui.run_viewer import RunViewer
from servetop.tui.state.command_requests import READ_ONLY


async def save_picture(viewer: RunViewer, svg: str) -> None:
    """Save a picture of the screen in a thread, named after the run and the time shown, and say where it is."""
    save = viewer.options.save_picture
    if save is None:
        viewer.show_message(READ_ONLY)
        return
    at = formats.clock(viewer.frame().stats.at).replace(":", "-")
    try:
        files = await asyncio.to_thread(save, f"{viewer.source.name}-{at}", portable(svg))
        viewer.show_message(f"picture of the screen: {' and '.join(map(str, files))}")
    except ServetopError as error:
        viewer.show_message(str(error))


async def write_report(viewer: RunViewer) -> None:
    """Write the report of the recording on the screen in a thread, and say where it is; only once the run has ended."""
    path, write = viewer.path, viewer.options.write_report
    if write is None:
        viewer.show_message(READ_ONLY)
    elif viewer.source.is_live():
        viewer.show_message("the run is active: write its report when it has ended")
    elif path is None:
        viewer.show_message("this run has no recording to write a report of")
    else:
        viewer.show_message("writing the report")
        try:
            viewer.show_message(f"report: {await asyncio.to_thread(write, path)}")
        except ServetopError as error:
            viewer.show_message(str(error))
