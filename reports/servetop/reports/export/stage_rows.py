"""The stages and requests of formats that hold one stage in a file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.summary.summary_types import RunSummary, StageSummary
from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.format.schema import REQUEST
from servetop.recordings.read.load_requests import Selection
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.cooldown import CoolDowns
from servetop.reports.summary.summary import run_summary


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExportedStage:
    """One stage with its requests, without its cool-down."""

    header: RunHeader
    run: RunSummary
    stage: StageSummary
    selection: Selection
    several: bool
    """Whether the recording has other stages to export."""

    @property
    def file_stem(self) -> str:
        """A name as `vllm bench serve` gives its results: label, rate, concurrency, model, date; and the stage."""
        set_up, stage = self.run.set_up, self.stage
        limit = "" if stage.max_concurrency is None else f"-concurrency{stage.max_concurrency}"
        model = (set_up.model_id or "model").rsplit("/", 1)[-1]
        rate = math.inf if stage.request_rate is None else stage.request_rate
        number = f"-stage{stage.stage}" if self.several else ""
        name = f"{set_up.label or set_up.backend}-{rate:g}qps{limit}-{model}-{set_up.date}{number}"
        return re.sub(r"[^\w.+=-]+", "_", name)[:200].lstrip(".")


def exported_stages(reader: RecordingReader, only: int | None) -> Sequence[ExportedStage]:
    """Return the stages of the totals, or the one numbered `only`; UsageError if there is none such."""
    summary, run = run_summary(reader), load_run(reader)
    starts = CoolDowns.load(reader, run).starts
    stages = [each for each in summary.stages if each.counted or each.stage == only]
    chosen = stages if only is None else [each for each in stages if each.stage == only]
    chosen = [each for each in chosen if each.measured.requests.num_prompts]
    if not chosen:
        numbers = ", ".join(str(each.stage) for each in summary.stages if each.measured.requests.num_prompts)
        reason = f"no stage {only} with requests: it has {numbers}" if only is not None and numbers else "no requests"
        raise UsageError(f"{reader.name} has {reason}")
    return [
        ExportedStage(
            header=reader.header,
            run=summary,
            stage=each,
            selection=Selection(
                stage=each.stage, excluded=tuple(pair for pair in starts.items() if pair[0] == each.stage)
            ),
            several=len(stages) > 1,
        )
        for each in chosen
    ]


def requests_of(reader: RecordingReader, stage: ExportedStage) -> list[RequestRecord]:
    """Return the requests of a stage in the order in which they were due."""
    where, parameters = stage.selection.where
    return sorted(reader.stream(REQUEST, where=where, parameters=parameters), key=lambda each: (each.due, each.id))


def chunk_gaps(request: RequestRecord) -> list[float]:
    """Return the seconds between consecutive chunks, to the microsecond of the recording."""
    return [round(each, 6) for each in np.diff(request.chunk_times).tolist()]


def failure_text(request: RequestRecord) -> str:
    """Return why a request did not succeed, never empty; empty for one that did."""
    return "" if request.status is RequestStatus.OK else request.error or str(request.status)


def statistics(values: Iterable[float | None], percentiles: Iterable[float]) -> dict[str, float]:
    """Return mean, std, median and percentiles such as `p99.9` of the known values; 0 without any, as in vLLM."""
    known = np.array([each for each in values if each is not None] or [0.0], dtype=np.float64)
    found = {"mean": float(known.mean()), "median": float(np.median(known)), "std": float(known.std())}
    return found | {f"p{q:.12g}": float(np.percentile(known, q)) for q in percentiles}
