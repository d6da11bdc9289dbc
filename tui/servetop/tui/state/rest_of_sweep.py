"""What is left of a sweep at the time of a frame."""

from __future__ import annotations

from servetop.analysis.summary.measured_sweep import is_sweep
from servetop.analysis.sweep.sweep_rest import SweepRest, sweep_rest
from servetop.tui.state.frame import Frame


def rest_of_sweep(frame: Frame) -> SweepRest | None:
    """Return what is left; None for other runs, before the first cell and after the end."""
    config = frame.header.config
    if frame.end is not None or not config.drain_at_stages or not is_sweep(config, frame.stages):
        return None
    return sweep_rest(config.stages, frame.stages, skipped=frame.skipped, notes=frame.notes, at=frame.stats.at)
