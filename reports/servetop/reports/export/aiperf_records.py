"""A stage as the artifacts of AIPerf 0.13: a record per request (`profile_export.jsonl`), and a summary (JSON 1.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from servetop.core.errors import ExitCode
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.units import MS_PER_S, NS_PER_S
from servetop.recordings.format.request_codec import last_known_at
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.row_formats import json_line, json_object
from servetop.reports.export.stage_rows import ExportedStage, chunk_gaps, failure_text, requests_of

RECORDS_FILE, SUMMARY_FILE = "profile_export.jsonl", "profile_export_aiperf.json"
SCHEMA_VERSION = "1.4"
NOT_CARRIED = (
    "engine, GPU and tick samples",
    "warm-ups and cool-downs",
    "cached tokens",
    "tokens of each chunk (inter_token_latency takes the first chunk for one token, as in AIPerf)",
    "texts of prompts and completions",
    "AIPerf's input_config",
)
"""What the result files of AIPerf cannot hold."""
_CANCELLED = {"code": 499, "type": "RequestCancellationError"}
_PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
_UNITS = {
    "request_latency": "ms",
    "time_to_first_token": "ms",
    "time_to_second_token": "ms",
    "time_to_first_output_token": "ms",
    "inter_token_latency": "ms",
    "inter_chunk_latency": "ms",
    "input_sequence_length": "tokens",
    "output_sequence_length": "tokens",
    "output_token_count": "tokens",
    "reasoning_token_count": "tokens",
    "output_token_throughput_per_user": "tokens/sec/user",
    "error_isl": "tokens",
}
"""AIPerf's display units of the metrics of a record, in the order of the summary."""


def aiperf_records(reader: RecordingReader, stage: ExportedStage) -> Iterator[str]:
    """Yield a line for each request, in the order in which they were due."""
    origin = _origin_ns(stage)
    for number, request in enumerate(requests_of(reader, stage)):
        metrics = {name: {"value": value, "unit": _UNITS[name]} for name, value in record_metrics(request).items()}
        record: dict[str, Any] = {"metadata": _metadata(request, number, origin), "metrics": metrics}
        if request.status is not RequestStatus.OK:
            record["error"] = _error(request)
        yield json_line(record)


def aiperf_summary(reader: RecordingReader, stage: ExportedStage) -> Iterator[str]:
    """Yield the text of the summary, whose statistics are those of the records that succeeded."""
    requests = requests_of(reader, stage)
    totals = stage.stage.measured.requests
    origin, known = _origin_ns(stage), [each.sent for each in requests if each.sent is not None]
    start = min(known, default=stage.stage.start)
    members: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "was_cancelled": stage.run.exit_code == ExitCode.INTERRUPTED,
        "is_complete": stage.stage.finished,
        "incomplete_reason": stage.stage.failure,
        "error_summary": _error_summary(requests),
        "start_time": _iso(origin, start),
        "end_time": _iso(origin, start + totals.duration),
        "request_throughput": _single(totals.request_throughput, "requests/sec"),
        "request_count": _single(totals.completed, "requests"),
        "error_request_count": _single(len(requests) - totals.completed, "requests"),
        "output_token_throughput": _single(totals.output_throughput, "tokens/sec"),
        "total_token_throughput": _single(totals.total_token_throughput, "tokens/sec"),
        "total_isl": _single(totals.total_input_tokens, "tokens"),
        "total_osl": _single(totals.total_output_tokens, "tokens"),
        "benchmark_duration": _single(totals.duration, "sec"),
    }
    if totals.request_goodput is not None:
        members["goodput"] = _single(totals.request_goodput, "requests/sec")
    return json_object({**members, **_distributions(requests)}.items())


def record_metrics(request: RequestRecord) -> dict[str, Any]:
    """Return the metrics of a record in AIPerf's units; of one that did not succeed, only its prompt's length."""
    if request.status is not RequestStatus.OK:
        return {"error_isl": request.prompt_tokens}
    gaps = chunk_gaps(request)
    later = request.output_tokens - 1
    decode = (
        None if request.e2el is None or request.ttft is None or later < 1 else (request.e2el - request.ttft) / later
    )
    reasoning = request.reasoning_tokens
    found: dict[str, float | list[float] | None] = {
        "request_latency": _ms(request.e2el),
        "time_to_first_token": _ms(request.ttft),
        "time_to_second_token": _ms(gaps[0]) if gaps else None,
        "time_to_first_output_token": _ms(request.ttfot),
        "inter_token_latency": _ms(decode),
        "inter_chunk_latency": [each * MS_PER_S for each in gaps] or None,
        "input_sequence_length": request.prompt_tokens,
        "output_sequence_length": request.output_tokens,
        "output_token_count": request.output_tokens - (reasoning or 0),
        "reasoning_token_count": reasoning,
        "output_token_throughput_per_user": 1 / decode if decode else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _metadata(request: RequestRecord, number: int, origin: int) -> dict[str, Any]:
    start = request.due if request.sent is None else request.sent
    conversation = request.id if request.conversation is None else request.conversation
    return {
        "session_num": number,
        "x_request_id": str(request.id),
        "x_correlation_id": str(conversation),
        "conversation_id": str(conversation),
        "turn_index": (request.turn or 1) - 1,
        "credit_issued_ns": _stamp(origin, request.due),
        "request_start_ns": _stamp(origin, start),
        "request_ack_ns": None if request.headers_at is None else _stamp(origin, request.headers_at),
        "request_end_ns": _stamp(origin, last_known_at(request)),
        "worker_id": f"worker_{request.worker}",
        "record_processor_id": "servetop",
        "benchmark_phase": "profiling",
        "was_cancelled": request.status is RequestStatus.CANCELLED,
    }


def _error(request: RequestRecord) -> dict[str, Any]:
    if request.status is RequestStatus.CANCELLED:
        return {**_CANCELLED, "message": failure_text(request)}
    return {"code": request.http_status, "type": str(request.status), "message": failure_text(request)}


def _error_summary(requests: Sequence[RequestRecord]) -> list[dict[str, Any]]:
    failed = [_error(each) for each in requests if each.status is not RequestStatus.OK]
    counts = Counter((each["code"], each["type"], each["message"]) for each in failed)
    return [
        {"error_details": {"code": code, "type": kind, "message": message}, "count": count}
        for (code, kind, message), count in counts.most_common()
    ]


def _distributions(requests: Sequence[RequestRecord]) -> dict[str, object]:
    values: dict[str, list[float]] = {}
    for request in requests:
        for name, value in record_metrics(request).items():
            values.setdefault(name, []).extend(value if isinstance(value, list) else [value])
    return {name: _statistics(values[name], unit) for name, unit in _UNITS.items() if name in values}


def _statistics(values: Sequence[float], unit: str) -> dict[str, object]:
    known = np.array(values, dtype=np.float64)
    percentiles = np.percentile(known, _PERCENTILES).tolist()
    return {
        "unit": unit, "avg": float(known.mean()),
        **{f"p{q}": value for q, value in zip(_PERCENTILES, percentiles, strict=True)},
        "min": float(known.min()), "max": float(known.max()), "std": float(known.std()), "count": known.size,
        "sum": float(known.sum()),
    }  # fmt: skip


def _single(value: float | None, unit: str) -> dict[str, object]:
    return {"unit": unit, "avg": value}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * MS_PER_S


def _origin_ns(stage: ExportedStage) -> int:
    """Return the Unix time of second 0 in nanoseconds."""
    return round(stage.header.anchor.wall_epoch_s * NS_PER_S)


def _stamp(origin: int, at: float) -> int:
    return origin + round(at * NS_PER_S)


def _iso(origin: int, at: float) -> str:
    return datetime.fromtimestamp(_stamp(origin, at) / NS_PER_S, UTC).isoformat()
