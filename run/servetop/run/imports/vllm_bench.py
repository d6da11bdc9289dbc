"""Reads a detailed result of `vllm bench serve`, or of `vllm-rs bench serve`, the same in Rust (vLLM up to 0.32)."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.units import NS_PER_S
from servetop.recordings.format.request_codec import last_known_at
from servetop.run.imports.bench_rows import bench_rows
from servetop.run.imports.derived_times import derived_starts
from servetop.run.imports.imported_result import ImportedLoad, ImportedResult
from servetop.run.imports.number_lists import lists_of, positive_number, seconds_in
from servetop.run.imports.reported_figures import bench_figures

TOOL = "vLLM bench"
_NEEDED = ("input_lens", "output_lens", "ttfts", "itls")
_OPTIONAL = ("latencies", "start_times", "queue_times", "errors", "generated_texts")
_REPEATED = ("failed_requests",)
"""What the benchmark in Rust writes of each failed request besides: the same as in the lists."""
_SET_UP = (
    "date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate",
    "burstiness", "max_concurrency", "ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps",
)  # fmt: skip
_COMPUTED = frozenset(
    (
        "duration", "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput",
        "output_throughput", "total_token_throughput", "input_throughput", "max_output_tokens_per_s",
        "max_concurrent_requests", "request_goodput",
    )
)  # fmt: skip
"""Figures that the summary computes again from the requests."""
_STATISTIC = re.compile(r"(mean|median|std|p[\d.]+)_(ttft|tpot|itl|e2el|client_queue_time)_ms")
_ENDPOINTS = {"openai-chat": "chat", "openai-responses": "responses"}
_FUTURE = 1e10
"""Most seconds that a clock of the sender shows: Unix time, or the time since its machine started."""


def is_vllm_result(document: Any) -> bool:
    """Whether a JSON value is a result of `vllm bench serve`, with or without its requests."""
    if not isinstance(document, Mapping):
        return False
    return "model_id" in document and "backend" in document and "completed" in document


def read_vllm_result(document: Mapping[str, Any]) -> ImportedResult:
    """Return the run of a result; UsageError if it has no requests, or if its values make no sense."""
    lists = lists_of(document, (*_NEEDED, *_OPTIONAL))
    missing = [name for name in _NEEDED if name not in lists]
    if missing:
        raise UsageError(
            f"it has statistics but no requests ({', '.join(missing)} missing): repeat the benchmark with "
            "--save-result --save-detailed"
        )
    if not lists["ttfts"]:
        raise UsageError("it has no requests: its lists are empty")
    load = _load(document)
    requests, remarks, origin = _requests(document, lists, load)
    completed = sum(each.status is RequestStatus.OK for each in requests)
    if document.get("completed", completed) != completed:
        remarks.append(f"the file says that {document['completed']} requests completed, its lists say {completed}")
    known = {*_SET_UP, *_NEEDED, *_OPTIONAL, *_COMPUTED, *_REPEATED}
    others = {key: value for key, value in document.items() if key not in known and not _STATISTIC.fullmatch(key)}
    return ImportedResult(
        tool=TOOL,
        requests=requests,
        load=load,
        backend=_text(document, "backend") or "unknown",
        model=_text(document, "model_id"),
        tokenizer=_text(document, "tokenizer_id"),
        label=_text(document, "label"),
        endpoint=_ENDPOINTS.get(_text(document, "endpoint_type"), "completions"),
        times_known="start_times" in lists,
        origin_ns=round(origin * NS_PER_S),
        wall_epoch_s=_date(document),
        metadata={key: value for key, value in others.items() if isinstance(value, str)},
        reported=bench_figures(document),
        not_carried=list(_not_carried(document, lists, others, load)),
        remarks=remarks,
    )


def _load(document: Mapping[str, Any]) -> ImportedLoad:
    limit = document.get("max_concurrency")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise UsageError(f"max_concurrency is {str(limit)[:40]}: a number of requests is needed")
    load = ImportedLoad(
        request_rate=positive_number(document.get("request_rate", math.inf), "request_rate"),
        max_concurrency=limit,
        burstiness=positive_number(document.get("burstiness") or 1.0, "burstiness"),
    )
    strategy = document.get("ramp_up_strategy")
    if strategy not in ("linear", "exponential"):
        return load
    start, end = (
        positive_number(document.get(f"ramp_up_{name}_rps"), f"ramp_up_{name}_rps") for name in ("start", "end")
    )
    return dataclasses.replace(load, ramp_from=start, request_rate=end, ramp_strategy=strategy)


def _requests(
    document: Mapping[str, Any], lists: Mapping[str, list[Any]], load: ImportedLoad
) -> tuple[list[RequestRecord], list[str], float]:
    """Return the requests in order of due time, remarks, and the sender's clock at second 0."""
    rows = list(bench_rows(lists))
    remarks: list[str] = []
    if "start_times" in lists:
        starts = seconds_in(lists["start_times"], "start_times", most=_FUTURE)
    else:
        starts = derived_starts([each.latency for each in rows], load, duration=document.get("duration"))
        remarks.append("the file has no start_times: they are derived from the latencies and the concurrency")
    waited = [0.0] * len(rows)
    if "queue_times" in lists and math.isfinite(load.request_rate):
        waited = seconds_in(lists["queue_times"], "queue_times")
    elif math.isfinite(load.request_rate) and load.max_concurrency is not None:
        remarks.append("the file has no queue_times: each request counts as due when it was sent")
    due = [start - wait for start, wait in zip(starts, waited, strict=True)]
    origin = min(due)
    order = sorted(range(len(rows)), key=lambda number: (due[number], number))
    requests = [
        rows[row].record(number, due=due[row] - origin, sent=starts[row] - origin) for number, row in enumerate(order)
    ]
    seconds_in([*map(last_known_at, requests)], "the end")
    return requests, remarks, origin


def _not_carried(
    document: Mapping[str, Any], lists: Mapping[str, list[Any]], others: Mapping[str, Any], load: ImportedLoad
) -> Iterator[str]:
    if any(lists.get("generated_texts", ())):
        yield "generated_texts"
    if any("\n" in str(each).strip() for each in lists.get("errors", ())):
        yield "errors before their last line"
    if any(lists.get("queue_times", ())) and not math.isfinite(load.request_rate):
        yield "queue_times (a request of a closed loop is due when it is sent)"
    if document.get("request_goodput") is not None:
        yield "request_goodput (the file does not have its objectives)"
    yield from (
        name for name, value in others.items() if not isinstance(value, str) and value is not None and value != 0
    )


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def _date(document: Mapping[str, Any]) -> float | None:
    """Return the date as Unix time; without a time zone it is local time of this machine; None without a date."""
    date = _text(document, "date")
    with suppress(ValueError, OverflowError, OSError):
        return datetime.strptime(date, "%Y%m%d-%H%M%S").timestamp()
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromisoformat(date).timestamp()  # of the benchmark in Rust
    return None
