"""The requests of each model, where the workload is a mix of models."""

from __future__ import annotations

import dataclasses

from servetop.analysis.summary.summary_types import ModelSummary
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.request_columns import Selection, collect_samples
from servetop.recordings.read.run_columns import RunColumns
from servetop.recordings.summary.request_metrics import request_summary


def model_summaries(reader: RecordingReader, run: RunColumns, selection: Selection) -> tuple[ModelSummary, ...]:
    """One summary for each model of the mix, in its order: requests and latencies, no server metrics."""
    config = run.header.config
    found = []
    for model, weight in config.workload.model_mix.items():
        samples = collect_samples(reader, dataclasses.replace(selection, model=model))
        requests = request_summary(samples, goodput=config.goodput, percentiles=config.metric_percentiles)
        found.append(ModelSummary(model=model, weight=weight, requests=requests))
    return tuple(found)
