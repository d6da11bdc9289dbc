"""Stages as the benchmarks of a report of guidellm (`benchmarks.json`, version 2, as guidellm 0.8 loads it)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.units import MS_PER_S
from servetop.recordings.format.request_codec import last_known_at
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.guidellm_distribution import distribution
from servetop.reports.export.row_formats import json_object
from servetop.reports.export.stage_rows import ExportedStage, failure_text, requests_of

GUIDELLM_FILE = "benchmarks.json"
NOT_IN_GUIDELLM = (
    "engine, GPU and tick samples",
    "warm-ups and cool-downs",
    "times of the chunks between the first and the last (inter_token_latency_ms is the mean of each request)",
    "distributions of rates and of concurrency over time (only their means)",
    "ramps and bursts of the load",
    "reasoning tokens and texts of prompts",
)
"""Data for which guidellm's format has no field."""
_GROUPS = ("successful", "incomplete", "errored")
_STATUS = {"successful": "completed", "incomplete": "cancelled", "errored": "errored"}
_NO_METRICS = dict.fromkeys(
    ("input", "input_per_second", "input_concurrency", "output", "output_per_second", "output_concurrency", "total",
     "total_per_second", "total_concurrency")
)  # fmt: skip
_MEDIA = {
    "image": ("tokens", "images", "pixels", "bytes"), "video": ("tokens", "frames", "seconds", "bytes"),
    "audio": ("tokens", "samples", "seconds", "bytes"), "tool_call": ("tokens", "mixed_tokens", "count"),
}  # fmt: skip
_Grouped = Mapping[str, Sequence[RequestRecord]]


def guidellm_benchmarks(reader: RecordingReader, stages: Sequence[ExportedStage]) -> Iterator[str]:
    """Yield the text of a report with a benchmark for each stage."""
    benchmarks = (_benchmark(stage, number, requests_of(reader, stage)) for number, stage in enumerate(stages))
    set_up, config = stages[0].run.set_up, reader.header.config
    tokens = {"prompt_tokens": config.workload.input_len or 1, "output_tokens": config.workload.output_len or 1}
    return json_object(
        [
            ("metadata", {"version": 2, "guidellm_version": "servetop", "python_version": "", "platform": ""}),
            (
                "config",
                {
                    "metadata": {
                        "labels": {"written_by": "servetop", **({"label": set_up.label} if set_up.label else {})}
                    },
                    "spec": {
                        "backend": {"kind": "openai_http", "target": _target(reader), "model": set_up.model_id},
                        "profile": {"kind": "synchronous"},
                        "data": [{"kind": "synthetic_text", **tokens}],
                    },
                },
            ),
            ("benchmarks", benchmarks),
            ("conclusions", []),
        ]
    )


def _target(reader: RecordingReader) -> str:
    facts = reader.header.engine
    return (facts and facts.url) or "http://unknown"


def _benchmark(stage: ExportedStage, number: int, requests: Sequence[RequestRecord]) -> dict[str, Any]:
    origin = stage.header.anchor.wall_epoch_s
    grouped: _Grouped = {name: [each for each in requests if _group(each) == name] for name in _GROUPS}
    known = [each.sent for each in requests if each.sent is not None]
    start = origin + min(known, default=stage.stage.start)
    end = start + stage.stage.measured.requests.duration
    return {
        "type_": "generative_benchmark",
        "config": {
            "run_id": stage.file_stem,
            "run_index": number,
            "strategy": _strategy(stage),
            "constraints": {},
            "profile": {},
            "requests": {},
            "backend": {"kind": "openai_http", "model": stage.run.set_up.model_id, "request_format": _path(stage)},
            "environment": {},
        },
        "scheduler_state": {"start_time": start, "end_time": end},
        "scheduler_metrics": _scheduler(grouped, start, end),
        "metrics": _metrics(stage, grouped),
        "requests": {name: [_row(each, name, origin) for each in group] for name, group in grouped.items()},
        "start_time": start,
        "end_time": end,
        "duration": end - start,
    }


def _group(request: RequestRecord) -> str:
    if request.status is RequestStatus.OK:
        return "successful"
    return "incomplete" if request.status is RequestStatus.CANCELLED else "errored"


def _path(stage: ExportedStage) -> str:
    chat = stage.run.set_up.endpoint_type == "openai-chat"
    return "/v1/chat/completions" if chat else "/v1/completions"


def _strategy(stage: ExportedStage) -> dict[str, Any]:
    """Return how requests were due, in guidellm's terms; a ramp has its last rate, or no rate at all."""
    rate, limit = stage.stage.request_rate, stage.stage.max_concurrency
    if rate is not None and rate < float("inf"):
        arrivals = stage.header.config.workload.arrivals
        kind = "poisson" if arrivals in ("", "poisson") else "constant"
        return {"type_": kind, "rate": rate, "max_concurrency": limit}
    return {"type_": "throughput"} if limit is None else {"type_": "concurrent", "streams": limit}


def _scheduler(grouped: _Grouped, start: float, end: float) -> dict[str, Any]:
    """Return the times of the run; the delays of guidellm's own scheduler are 0."""
    latencies = [each.e2el for each in grouped["successful"] if each.e2el is not None]
    mean = sum(latencies) / len(latencies) if latencies else 0.0
    return {
        "start_time": start, "request_start_time": start, "measure_start_time": start, "measure_end_time": end,
        "request_end_time": end, "end_time": end, "requests_made": _counts(grouped), "queued_time_avg": 0.0,
        "resolve_start_delay_avg": 0.0, "resolve_targeted_start_delay_avg": 0.0, "request_start_delay_avg": 0.0,
        "request_targeted_start_delay_avg": 0.0, "request_time_avg": mean, "resolve_end_delay_avg": 0.0,
        "resolve_time_avg": mean, "finalized_delay_avg": 0.0, "processed_delay_avg": 0.0,
    }  # fmt: skip


def _counts(grouped: _Grouped) -> dict[str, int]:
    counts = {name: len(group) for name, group in grouped.items()}
    return {**counts, "total": sum(counts.values())}


def _metrics(stage: ExportedStage, grouped: _Grouped) -> dict[str, Any]:
    totals = stage.stage.measured.requests
    found: dict[str, Any] = {"request_totals": _counts(grouped)}
    for name, (value, weight) in _VALUES.items():
        found[name] = _grouped(grouped, value, weight)
    seconds = [each.e2el or 0.0 for each in grouped["successful"]]
    duration = totals.duration or 1.0
    means = {
        "requests_per_second": totals.request_throughput,
        "request_concurrency": sum(seconds) / duration,
        "prompt_tokens_per_second": totals.total_input_tokens / duration,
        "output_tokens_per_second": totals.output_throughput,
        "tokens_per_second": totals.total_token_throughput,
    }
    for name, mean in means.items():
        only = distribution([mean or 0.0])
        found[name] = {"successful": only, "incomplete": distribution([]), "errored": distribution([]), "total": only}
    nothing = dict.fromkeys((*_GROUPS, "total"), distribution([]))
    found |= dict.fromkeys(("time_to_last_round_trip_ms", "avg_round_trip_time_ms"), nothing)
    tokens = {"input": found["prompt_token_count"], "output": found["output_token_count"]}
    found["text"] = {
        "tokens": {**_NO_METRICS, **tokens, "total": found["total_token_count"]},
        "words": _NO_METRICS,
        "characters": _NO_METRICS,
    }
    return found | {kind: dict.fromkeys(names, _NO_METRICS) for kind, names in _MEDIA.items()}


def _grouped(
    grouped: _Grouped, value: Callable[[RequestRecord], float | None], weight: Callable[[RequestRecord], float]
) -> dict[str, Any]:
    pairs = {
        name: [(found, weight(each)) for each in group if (found := value(each)) is not None]
        for name, group in grouped.items()
    }
    pairs["total"] = [pair for group in grouped for pair in pairs[group]]
    return {name: distribution([a for a, _ in each], [b for _, b in each]) for name, each in pairs.items()}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * MS_PER_S


def _decode(request: RequestRecord) -> float | None:
    """Return the mean time between tokens in ms, up to the last chunk."""
    if request.output_tokens < 2 or request.chunk_times.size < 2:
        return None
    return float(request.chunk_times[-1] - request.chunk_times[0]) / (request.output_tokens - 1) * MS_PER_S


def _per_token(request: RequestRecord) -> float | None:
    if not request.output_tokens or request.sent is None or not request.chunk_times.size:
        return None
    return float(request.chunk_times[-1] - request.sent) / request.output_tokens * MS_PER_S


def _iteration(request: RequestRecord) -> float | None:
    return request.output_tokens / request.chunk_times.size if request.chunk_times.size else None


def _one(_: RequestRecord) -> float:
    return 1.0


_VALUES: Mapping[str, tuple[Callable[[RequestRecord], float | None], Callable[[RequestRecord], float]]] = {
    "request_latency": (lambda each: each.e2el, _one),
    "request_streaming_iterations_count": (lambda each: float(each.chunk_times.size), _one),
    "prompt_token_count": (lambda each: float(each.prompt_tokens), _one),
    "output_token_count": (lambda each: float(each.output_tokens), _one),
    "total_token_count": (lambda each: float(each.prompt_tokens + each.output_tokens), _one),
    "time_to_first_token_ms": (lambda each: _ms(each.ttft), _one),
    "time_to_first_output_token_ms": (lambda each: _ms(each.ttfot), _one),
    "time_per_output_token_ms": (_per_token, lambda each: float(each.output_tokens)),
    "inter_token_latency_ms": (_decode, lambda each: float(each.output_tokens - 1)),
    "output_tokens_per_iteration": (_iteration, lambda each: float(each.output_tokens)),
    "iter_tokens_per_iteration": (_iteration, lambda each: float(each.output_tokens)),
}
"""The value of a request, and how often it counts, by guidellm's name."""


def _row(request: RequestRecord, group: str, origin: float) -> dict[str, Any]:
    def at(seconds: float | None) -> float | None:
        return None if seconds is None else origin + seconds

    chunks = request.chunk_times
    started = origin + (request.due if request.sent is None else request.sent)
    ok, last = request.status is RequestStatus.OK, origin + last_known_at(request)
    timings = {
        "targeted_start": at(request.due), "resolve_start": started,
        "request_start": at(request.sent), "first_request_iteration": at(request.first_token_at),
        "first_token_iteration": at(request.first_token_at),
        "first_output_token_iteration": None if request.ttfot is None else started + request.ttfot,
        "last_token_iteration": origin + float(chunks[-1]) if chunks.size else None,
        "last_request_iteration": origin + float(chunks[-1]) if chunks.size else None,
        "request_iterations": chunks.size, "token_iterations": chunks.size, "request_end": at(request.done_at),
        "resolve_end": last,
    }  # fmt: skip
    return {
        "type_": "generative_request_stats",
        "request_id": str(request.id),
        "output": request.output_text,
        "info": {
            "request_id": str(request.id),
            "conversation_id": None if request.conversation is None else str(request.conversation),
            "turn_index": (request.turn or 1) - 1,
            "status": _STATUS[group],
            "timings": timings,
            "error": None if ok else failure_text(request),
        },
        "input_metrics": {"text_tokens": request.prompt_tokens, "cached_tokens": request.cached_tokens},
        "output_metrics": {"text_tokens": request.output_tokens},
        "request_latency": request.e2el,
        "prompt_tokens": request.prompt_tokens,
        "output_tokens": request.output_tokens,
        "time_to_first_token_ms": _ms(request.ttft),
        "inter_token_latency_ms": _decode(request),
    }
