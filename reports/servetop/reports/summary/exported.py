"""The metrics of the engine page, read from a recording for its summary."""

from __future__ import annotations

import math

from servetop.analysis.columns.run_columns import RunColumns
from servetop.analysis.exported.exported_summary import ExportedMetric, exported_summary
from servetop.analysis.exported.gpu_peaks import common_peak
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.engines.metrics.exported_tables import exported_metrics
from servetop.recordings.read.reader import RecordingReader


def engine_metrics(reader: RecordingReader, run: RunColumns) -> tuple[ExportedMetric, ...] | None:
    """Return the metrics since the start of the load without its warm-up; None if none were recorded."""
    facts = run.header.engine
    specs = exported_metrics(facts) if facts is not None else ()
    if not specs:
        return None
    history = ScrapeHistory()
    history.extend(reader.engine_series())
    loaded = min((stage.period.start for stage in run.stages), default=-math.inf)
    return exported_summary(specs, history, start=max(run.warm_at, loaded), peak=common_peak(run.gpus))
