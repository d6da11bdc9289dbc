"""What each of several servers did: the requests that went there, and what it told itself."""

from __future__ import annotations

import dataclasses
from typing import Any

from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.request_columns import Selection, collect_samples
from servetop.recordings.read.run_columns import Period, RunColumns
from servetop.recordings.summary.engine_metrics import server_figures
from servetop.recordings.summary.in_flight_timeline import InFlightTimeline
from servetop.recordings.summary.request_metrics import request_figures


def replica_figures(
    reader: RecordingReader, run: RunColumns, selection: Selection, *, flights: InFlightTimeline, period: Period
) -> list[dict[str, Any]]:
    """One summary for each server, in the order of their URLs; none for a run with one server.

    Behind a front door nobody knows which server a request went to: then there is `server` alone.
    """
    facts, config = run.header.engine, run.header.config
    urls = () if facts is None else facts.replica_urls
    told = reader.replica_samples() if urls else []
    figures = []
    for number, url in enumerate(urls):
        samples = collect_samples(reader, dataclasses.replace(selection, replica=number))
        requests = (
            {}
            if config.engine.front_door
            else request_figures(samples, goodput=config.goodput, percentiles=config.metric_percentiles)
        )
        own = run.with_samples([each for each in told if each.replica == number])
        server = server_figures(own, period, flights=flights)
        figures.append({"replica": number, "url": url, **requests, "server": server})
    return figures
