"""What each of several servers did: its requests, and the metrics that it exported."""

from __future__ import annotations

import dataclasses

from servetop.analysis.summary.summary_types import ReplicaSummary
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.request_columns import Selection, collect_samples
from servetop.recordings.read.run_columns import Period, RunColumns
from servetop.recordings.summary.engine_metrics import server_summary
from servetop.recordings.summary.in_flight_timeline import InFlightTimeline
from servetop.recordings.summary.request_metrics import request_summary


def replica_summaries(
    reader: RecordingReader, run: RunColumns, selection: Selection, *, timeline: InFlightTimeline, period: Period
) -> tuple[ReplicaSummary, ...]:
    """One summary for each server, in the order of their URLs; none for a run with one server.

    Behind a load balancer it is unknown which server a request went to: then there is `server` alone.
    """
    facts, config = run.header.engine, run.header.config
    urls = () if facts is None else facts.replica_urls
    reported = reader.replica_samples() if urls else []
    found = []
    for number, url in enumerate(urls):
        samples = collect_samples(reader, dataclasses.replace(selection, replica=number))
        requests = (
            None
            if config.engine.front_door
            else request_summary(samples, goodput=config.goodput, percentiles=config.metric_percentiles)
        )
        own = run.with_samples([each for each in reported if each.replica == number])
        server = server_summary(own, period, timeline=timeline)
        found.append(ReplicaSummary(replica=number, url=url, requests=requests, server=server))
    return tuple(found)
