"""Writes virtual runs as recordings, so that the dashboard and the reports can open them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from servetop.core.clock import ClockAnchor, wall_clock
from servetop.run.record_prediction import write_virtual_run
from servetop.simulator.virtual_run.virtual_run import VirtualRun


def write_recording(run: VirtualRun, path: Path) -> None:
    """Write a run to a new file, tick by tick; RecordingError if the file exists."""
    anchor = ClockAnchor(origin_ns=0, wall_epoch_s=wall_clock())
    run = dataclasses.replace(run, header=dataclasses.replace(run.header, anchor=anchor))
    write_virtual_run(run, path).close(run.end)
