"""The summary of a watch, computed from its recording."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from servetop.analysis.columns.run_columns import Period
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.summary.engine_metrics import engine_summary, server_summary
from servetop.analysis.summary.watch_types import ReplicaWatch, WatchedServer, WatchSummary
from servetop.analysis.summary.watched_figures import watch_headline, watched_figures
from servetop.core.events import RunEnd
from servetop.core.same_fields import from_same_fields
from servetop.recordings.read.load_requests import load_timeline
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.exported import engine_metrics
from servetop.reports.summary.fleet_latencies import fleet_latencies
from servetop.reports.summary.recorded_run import recorded_run
from servetop.reports.summary.replica_watches import fleet_headline, replica_series, replica_watches
from servetop.reports.summary.summary import recording_state


def watch_summary(
    reader: RecordingReader, *, end: RunEnd | None = None, record: RunRecord | None = None
) -> WatchSummary:
    """Summarise a watch; `end` is its end, if it is not recorded yet, and `record` what was read of it before."""
    run, record = load_run(reader), record or recorded_run(reader, end=end)
    config, facts, end = run.header.config, run.header.engine, record.end
    figures = watched_figures(record, run)
    replicas = replica_watches(reader, run, record)
    if replicas and figures is not None:  # the limits of a sum are those of no server
        figures = dataclasses.replace(figures, limits=())
    server = server_summary(run, Period(), timeline=load_timeline(reader))
    return WatchSummary(
        metadata=config.metadata,
        date=datetime.fromtimestamp(run.header.anchor.wall_epoch_s).strftime("%Y%m%d-%H%M%S"),
        backend=config.engine.name if facts is None else facts.name,
        label=config.label or None,
        model_id=(facts and facts.model) or config.engine.model or None,
        url=config.engine.url if facts is None else facts.url,
        recording=str(reader.path),
        recording_state=recording_state(reader, run),
        engine=engine_summary(run),
        exit_code=None if end is None else end.exit_code,
        error=end.reason if end is not None and end.exit_code else None,
        headline=fleet_headline(replicas, figures) if replicas else watch_headline(figures),
        watched=figures,
        server=_with_fullest(from_same_fields(WatchedServer, server), replicas),
        engine_metrics=fleet_latencies(replica_series(reader)) if replicas else engine_metrics(reader, run),
        replicas=replicas or None,
    )


def _with_fullest(server: WatchedServer, replicas: Sequence[ReplicaWatch]) -> WatchedServer:
    """Return the sums of several servers with the highest KV usage of one, because the mean hides it."""
    peaks = [each.server.max_kv_usage for each in replicas if each.server.max_kv_usage is not None]
    return dataclasses.replace(server, max_kv_usage=max(peaks)) if peaks else server
