"""The final numbers of a run, exact, from raw rows, as one JSON-able dictionary (docs/reference/metrics.md)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from servetop.analysis.verdicts.steady_state import SteadyWindow
from servetop.core.events import RunEnd, StageChange
from servetop.recordings.format.steady_codec import window_data
from servetop.recordings.library.run_sessions import finished_stages
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.request_columns import RequestColumns, Selection, collect_samples
from servetop.recordings.read.run_columns import Period, RunColumns, StagePeriod
from servetop.recordings.summary.cooldown import CoolDowns
from servetop.recordings.summary.energy_metrics import energy_figures
from servetop.recordings.summary.engine_metrics import engine_facts, server_figures
from servetop.recordings.summary.failure_metrics import failures
from servetop.recordings.summary.in_flight_timeline import InFlightTimeline
from servetop.recordings.summary.model_metrics import model_figures
from servetop.recordings.summary.replica_metrics import replica_figures
from servetop.recordings.summary.request_metrics import FIGURES, REASONING_FIGURES, request_figures
from servetop.recordings.summary.stored_steady import in_steady_state, known_windows, no_steady_state, whole_steady
from servetop.recordings.summary.trust_metrics import trust_figures
from servetop.recordings.summary.turn_metrics import turn_figures

_ENDPOINT_TYPES = {"completions": "openai", "chat": "openai-chat", "responses": "openai-responses"}
"""What vLLM's benchmark calls them."""

_PARTS = (
    "failures", "cooldown_requests", "steady", "models", "replicas", "turns", "server", "energy", "trust", "stages",
    "total_reasoning_tokens",
)  # fmt: skip
"""Keys of `run_summary` that are measured, besides figures."""


def run_summary(
    reader: RecordingReader, *, percentiles: Sequence[float] | None = None, end: RunEnd | None = None
) -> dict[str, Any]:
    """The whole run but its warm-up: set-up, totals, statistics, engine, server, trust, and the same for each stage.

    `percentiles` takes the place of those that the run was asked for; `end` is how the run ended, where the recording
    does not say so yet.
    """
    run, flights = RunColumns.load(reader), InFlightTimeline.load(reader)
    run = run if end is None else dataclasses.replace(run, end=end)
    if percentiles is not None:
        run = _with_percentiles(run, percentiles)
    windows, cooldowns = known_windows(reader, run), CoolDowns.load(reader, run)
    warm_at = run.warm_at
    selection = Selection(start=None if warm_at == -math.inf else warm_at, left_out=tuple(cooldowns.starts.items()))
    samples = collect_samples(reader, selection)
    whole = _summary(reader, run, flights=flights, selection=selection, period=Period(start=warm_at), samples=samples)
    only = samples if len(run.stages) == 1 and warm_at == -math.inf else None  # they are the stage's, too
    ended = finished_stages([stage.change for stage in run.stages], reader.notes(), end=run.end)
    finished = {stage.index for stage in ended}
    stages = [
        _stage_summary(reader, run, flights=flights, stage=stage, cooldowns=cooldowns, samples=only)
        | {"steady": _steady(reader, run, flights=flights, stage=stage.change.index, windows=windows)}
        | {"finished": stage.change.index in finished}
        for stage in run.stages
        if not stage.change.warmup
    ]
    steady = {"steady": whole_steady([stage["steady"] for stage in stages])}
    cooldown = {"cooldown_requests": sum(cooldowns.requests.values())}
    models = model_figures(reader, run, selection)
    replicas = replica_figures(reader, run, selection, flights=flights, period=Period(start=warm_at))
    lists = {name: value for name, value in (("models", models), ("replicas", replicas)) if value}
    reasons = {"failures": failures(reader, selection) if whole["failed"] else []}
    parts = {**reasons, **cooldown, **steady, **lists}
    return {**_set_up(reader, run), **_end(run), **whole, **parts, "stages": stages}


def without_figures(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Set-up, error and recording of a run that failed before its first request: nothing in it was measured."""
    figures = {*FIGURES, *REASONING_FIGURES, *_PARTS}
    return {name: value for name, value in summary.items() if name not in figures}


def _end(run: RunColumns) -> dict[str, Any]:
    """The exit code, and the reason where the run failed; both are null while it goes on, and of one that broke off."""
    code = None if run.end is None else run.end.exit_code
    return {"exit_code": code, "error": run.end.reason if run.end is not None and code else None}


def _with_percentiles(run: RunColumns, percentiles: Sequence[float]) -> RunColumns:
    config = dataclasses.replace(run.header.config, metric_percentiles=tuple(percentiles))
    return dataclasses.replace(run, header=dataclasses.replace(run.header, config=config))


def summarise(
    reader: RecordingReader, *, stage: int | None = None, start: float | None = None, until: float | None = None
) -> dict[str, Any]:
    """Totals, statistics, server and trust of the requests that were due in a stage and/or between two instants.

    The server's figures are those of the stage's time, or of the time between the instants.
    """
    run, flights = RunColumns.load(reader), InFlightTimeline.load(reader)
    periods = [each.period for each in run.stages if each.change.index == stage]
    period = Period(
        start=max([-math.inf if start is None else start, *(each.start for each in periods[:1])]),
        until=min([math.inf if until is None else until, *(each.until for each in periods[-1:])]),
    )
    selection = Selection(stage=stage, start=start, until=until)
    return _summary(reader, run, flights=flights, selection=selection, period=period)


def _summary(
    reader: RecordingReader,
    run: RunColumns,
    *,
    flights: InFlightTimeline,
    selection: Selection,
    period: Period,
    samples: RequestColumns | None = None,
) -> dict[str, Any]:
    """Of the selected requests, whose samples may be at hand."""
    samples = samples or collect_samples(reader, selection)
    return {
        **request_figures(samples, goodput=run.header.config.goodput, percentiles=run.header.config.metric_percentiles),
        **turn_figures(reader, selection),
        "server": server_figures(run, period, flights=flights),
        "energy": energy_figures(run, period),
        "trust": trust_figures(run, samples, flights=flights, period=period),
    }


def _steady(
    reader: RecordingReader,
    run: RunColumns,
    *,
    flights: InFlightTimeline,
    stage: int,
    windows: Mapping[int, SteadyWindow],
) -> dict[str, Any]:
    """A stage's steady window with its figures; without one, just why there is none."""
    window = windows.get(stage, SteadyWindow(reason="the run ended before it was looked for"))
    if window.start is None or window.end is None:
        return no_steady_state(window)
    period = Period(start=window.start, until=window.end)
    selection = Selection(stage=stage, start=window.start, until=window.end)
    figures = _summary(reader, run, flights=flights, selection=selection, period=period)
    return {**window_data(window), **in_steady_state(figures, run, period=period)}


def _stage_summary(
    reader: RecordingReader,
    run: RunColumns,
    *,
    flights: InFlightTimeline,
    stage: StagePeriod,
    cooldowns: CoolDowns,
    samples: RequestColumns | None,
) -> dict[str, Any]:
    change, period = stage.change, stage.period
    left_out = tuple(pair for pair in cooldowns.starts.items() if pair[0] == change.index)
    selection = Selection(stage=change.index, left_out=left_out)
    figures = _summary(reader, run, flights=flights, selection=selection, period=period, samples=samples)
    return {
        "stage": change.index,
        "label": change.label,
        "repeat": change.repeat,
        "request_rate": json_rate(change.request_rate),
        "max_concurrency": change.max_concurrency,
        "max_num_seqs": change.max_num_seqs,
        "start": period.start,
        "end": _last_instant(run) if math.isinf(period.until) else period.until,
        "preemptions": figures["server"]["preemptions"],
        "cooldown_requests": cooldowns.requests.get(change.index, 0),
        **figures,
    }


def _set_up(reader: RecordingReader, run: RunColumns) -> dict[str, Any]:
    config, facts = run.header.config, run.header.engine
    changes = [stage.change for stage in run.stages if not stage.change.warmup]
    endpoint = config.workload.endpoint or (facts.endpoints[0] if facts else "completions")
    set_up: dict[str, Any] = {
        "date": datetime.fromtimestamp(run.header.anchor.wall_epoch_s).strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": _ENDPOINT_TYPES.get(endpoint, endpoint),
        "backend": config.engine.name if facts is None else facts.name,
        "label": config.label or None,
        "model_id": (facts and facts.model) or config.engine.model or None,
        "tokenizer_id": config.workload.tokenizer or None,
        "request_rate": json_rate(_common(changes, "request_rate")),
        "burstiness": json_rate(config.workload.burstiness),
        "max_concurrency": _common(changes, "max_concurrency"),
    }
    ramp = next((stage for stage in config.stages if stage.ramp_from is not None and not stage.warmup), None)
    if ramp is not None and len(changes) == 1:
        set_up["ramp_up_strategy"] = ramp.ramp_strategy
        set_up |= {"ramp_up_start_rps": ramp.ramp_from, "ramp_up_end_rps": ramp.request_rate}
    own_keys = {"recording": str(reader.path), "recording_state": _state(reader, run), "engine": engine_facts(run)}
    return {**config.metadata, **set_up, **own_keys}


def json_rate(rate: float | None) -> float | str | None:
    """A rate as vLLM's results have it: `inf` as a string."""
    return "inf" if rate is not None and math.isinf(rate) else rate


def _common(changes: Iterable[StageChange], name: str) -> Any:
    """What all stages have in common; None when they differ."""
    values = {getattr(change, name) for change in changes}
    return values.pop() if len(values) == 1 else None


def _state(reader: RecordingReader, run: RunColumns) -> str:
    if reader.damage is not None:
        return "damaged"
    if run.end is not None:
        return "finished"
    return "live" if reader.is_live() else "broken-off"


def _last_instant(run: RunColumns) -> float | None:
    """When the run ended, else the end of its last tick."""
    if run.end is not None:
        return run.end.at
    return float(run.tick_ends[-1]) if run.tick_ends.size else None
