"""The figures of each model, where requests asked for several."""

from __future__ import annotations

import dataclasses
from typing import Any

from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.request_columns import Selection, collect_samples
from servetop.recordings.read.run_columns import RunColumns
from servetop.recordings.summary.request_metrics import request_figures


def model_figures(reader: RecordingReader, run: RunColumns, selection: Selection) -> list[dict[str, Any]]:
    """One summary for each model of the mix, in its order: requests and latencies, no server's figures."""
    config = run.header.config
    figures = []
    for model, weight in config.workload.model_mix.items():
        samples = collect_samples(reader, dataclasses.replace(selection, model=model))
        figures.append(
            {
                "model": model,
                "weight": weight,
                **request_figures(samples, goodput=config.goodput, percentiles=config.metric_percentiles),
            }
        )
    return figures
