"""The summary broken down by model of a mix, and by replica."""

from __future__ import annotations

import dataclasses

from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.analysis.summary.engine_metrics import server_summary
from servetop.analysis.summary.in_flight_timeline import InFlightTimeline
from servetop.analysis.summary.request_metrics import request_summary
from servetop.analysis.summary.summary_types import ModelSummary, ReplicaSummary
from servetop.recordings.read.load_requests import Selection, load_requests
from servetop.recordings.read.reader import RecordingReader


def model_summaries(reader: RecordingReader, run: RunColumns, selection: Selection) -> tuple[ModelSummary, ...]:
    """One summary for each model of the mix, in its order: requests and latencies, no server metrics."""
    config = run.header.config
    found = []
    for model, weight in config.workload.model_mix.items():
        samples = load_requests(reader, dataclasses.replace(selection, model=model))
        requests = request_summary(samples, goodput=config.goodput, percentiles=config.metric_percentiles)
        found.append(ModelSummary(model=model, weight=weight, requests=requests))
    return tuple(found)


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
        samples = load_requests(reader, dataclasses.replace(selection, replica=number))
        requests = (
            None
            if config.engine.front_door
            else request_summary(samples, goodput=config.goodput, percentiles=config.metric_percentiles)
        )
        own = run.with_samples([each for each in reported if each.replica == number])
        server = server_summary(own, period, timeline=timeline)
        found.append(ReplicaSummary(replica=number, url=url, requests=requests, server=server))
    return tuple(found)
