"""Reads the baseline after the first frame and compares the run with it, both in threads."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

from servetop.analysis.series.stage_clock import stage_spans
from servetop.core.errors import ServetopError
from servetop.tui.options import Compare, DashboardOptions
from servetop.tui.run_viewer import RunViewer
from servetop.tui.state.baseline_run import BaselineReader
from servetop.tui.state.comparison_table import ComparisonTable

AGAIN_SECONDS = 5.0
"""Between two looks whether a stage has ended, or a live baseline has grown."""


async def load_baseline(viewer: RunViewer, options: DashboardOptions) -> None:
    """Show the baseline once it is read, and compare after each stage; errors become messages."""
    if options.baseline is None:
        return
    try:
        with await asyncio.to_thread(options.baseline) as source:
            reader, compared = BaselineReader(source), _Comparing(viewer, options.compare)
            while True:
                viewer.compare_with(await asyncio.to_thread(reader.read))
                await compared.update()
                while viewer.baseline is not None and not viewer.baseline.live:
                    await asyncio.sleep(AGAIN_SECONDS)
                    await compared.update()
                await asyncio.sleep(AGAIN_SECONDS)
    except ServetopError as error:
        viewer.show_comparison(ComparisonTable(note=str(error)))
        viewer.show_message(f"no baseline: {error}")


class _Comparing:
    """Compares again when a stage of either run has ended, or another run is shown."""

    def __init__(self, viewer: RunViewer, compare: Compare | None) -> None:
        self._viewer = viewer
        self._compare = compare
        self._compared: object = None

    async def update(self) -> None:
        """Show the comparison of the stages that are over by now, unless it is shown already."""
        viewer, baseline = self._viewer, self._viewer.baseline
        if baseline is None or self._compare is None:
            return
        over = _stages_over(viewer)
        state = (viewer.path, over, viewer.run.end, baseline.end, len(baseline.stages))
        if state == self._compared:
            return
        self._compared = state
        if viewer.path is None or not over:
            viewer.show_comparison(ComparisonTable(note="no stage of the run is over yet"))
            return
        names = viewer.run_names
        note = "stages that are over; compared again after each" if viewer.source.is_live() else ""
        viewer.show_comparison(await asyncio.to_thread(_table, self._compare, viewer.path, names, note=note))


def _stages_over(viewer: RunViewer) -> int:
    """Return the stages of the run that have ended."""
    spans = stage_spans(viewer.run.stages, end=None if viewer.source.is_live() else viewer.run.edge)
    return sum(span.until < math.inf for span in spans)


def _table(compare: Compare, path: Path, names: tuple[str, str], *, note: str) -> ComparisonTable:
    from servetop.tui.state.comparison_rows import comparison_table

    try:
        return comparison_table(compare(path), run=names[0], baseline=names[1], note=note)
    except ServetopError as error:
        return ComparisonTable(note=str(error))
    except Exception as error:  # a defect here must not end the dashboard of a run
        return ComparisonTable(note=f"the comparison failed: {type(error).__name__}: {error}")
