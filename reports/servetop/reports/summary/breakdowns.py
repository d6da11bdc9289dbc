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
    """Return one summary per model of the mix, in its order, with requests and latencies but no server metrics."""
    config = run.header.config
    summaries = []
    for model, weight in config.workload.model_mix.items():
        samples = load_requests(reader, dataclasses.replace(selection, model=model))
        requests = request_summary(samples, goodput=config.goodput, percentiles=config.metric_percentiles)
        summaries.append(ModelSummary(model=model, weight=weight, requests=requests))
    return tuple(summaries)


def replica_summaries(
    reader: RecordingReader, run: RunColumns, selection: Selection, *, timeline: InFlightTimeline, period: Period
) -> tuple[ReplicaSummary, ...]:
    """Return one summary per server, in the order of their URLs; none for a run with one server.

    Behind a load balancer the server of a request is unknown, so only `server` is set.
    """
    facts, config = run.header.engine, run.header.config
    urls = () if facts is None else facts.replica_urls
    scrapes = reader.replica_samples() if urls else []
    summaries = []
    for number, url in enumerate(urls):
        samples = load_requests(reader, dataclasses.replace(selection, replica=number))
        requests = (
            None
            if config.engine.front_door
            else request_summary(samples, goodput=config.goodput, percentiles=config.metric_percentiles)
        )
        replica_run = run.with_samples([each for each in scrapes if each.replica == number])
        server = server_summary(replica_run, period, timeline=timeline)
        summaries.append(ReplicaSummary(replica=number, url=url, requests=requests, server=server))
    return tuple(summaries)
