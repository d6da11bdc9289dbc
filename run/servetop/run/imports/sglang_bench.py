"""Reads a result of SGLang's `bench_serving --output-details`, which has requests but not when they were sent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from servetop.core.errors import UsageError
from servetop.core.events import RequestStatus
from servetop.core.text import formats
from servetop.recordings.format.request_codec import last_known_at
from servetop.run.imports.bench_rows import bench_rows
from servetop.run.imports.derived_times import DURATION_TOLERANCE
from servetop.run.imports.imported_result import MAX_SECONDS, ImportedLoad, ImportedResult
from servetop.run.imports.number_lists import lists_of, positive_number, seconds_in, time_in
from servetop.run.imports.placed_times import closed_loop_starts, even_starts, last_end
from servetop.run.imports.reported_figures import bench_figures

TOOL = "SGLang bench_serving"
_NEEDED = ("input_lens", "output_lens", "ttfts", "itls")
_OPTIONAL = ("errors", "generated_texts", "cached_tokens")


def is_sglang_result(document: Any) -> bool:
    """Whether a JSON value is a result of `bench_serving`, with or without its requests."""
    if not isinstance(document, Mapping):
        return False
    return "sharegpt_output_len" in document and "total_output_tokens" in document and "completed" in document


def read_sglang_result(document: Mapping[str, Any]) -> ImportedResult:
    """Return the run of a result; UsageError if it has no requests, or if its values make no sense."""
    lists = lists_of(document, (*_NEEDED, *_OPTIONAL))
    missing = [name for name in _NEEDED if name not in lists]
    if missing:
        raise UsageError(
            f"it has statistics but no requests ({', '.join(missing)} missing): repeat the benchmark with "
            "--output-details, whose file has them"
        )
    if not lists["ttfts"]:
        raise UsageError("it has no requests: its lists are empty")
    rows, load = list(bench_rows(lists)), _load(document)
    starts, remark = _starts([each.latency or 0.0 for each in rows], load, document.get("duration"))
    requests = [row.record(number, due=starts[number], sent=starts[number]) for number, row in enumerate(rows)]
    seconds_in([*map(last_known_at, requests)], "the end")
    server = document.get("server_info")
    known = server if isinstance(server, Mapping) else {}
    completed = sum(each.status is RequestStatus.OK for each in requests)
    remarks = [remark]
    if document.get("completed") != completed:
        remarks.append(f"the file says that {document['completed']} requests completed, its lists say {completed}")
    return ImportedResult(
        tool=TOOL,
        requests=requests,
        load=load,
        backend=_text(document, "backend") or "unknown",
        model=_text(known, "model_path"),
        tokenizer=_text(known, "tokenizer_path"),
        label=_text(document, "tag"),
        endpoint="chat" if "chat" in _text(document, "backend") else "completions",
        times_known=False,
        reported=bench_figures(document),
        not_carried=list(_not_carried(lists, known)),
        remarks=remarks,
    )


def _load(document: Mapping[str, Any]) -> ImportedLoad:
    limit, rate = document.get("max_concurrency"), document.get("request_rate")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise UsageError(f"max_concurrency is {str(limit)[:40]}: a number of requests is needed")
    paced = rate is not None and rate != "trace"
    return ImportedLoad(
        request_rate=positive_number(rate, "request_rate") if paced else math.inf,
        max_concurrency=limit,
        scheduled=rate == "trace",
    )


def _starts(latencies: list[float], load: ImportedLoad, reported: Any) -> tuple[list[float], str]:
    """Return when each request was sent, in seconds, and how that was found."""
    duration = time_in(reported, "duration", most=MAX_SECONDS)
    if math.isfinite(load.request_rate):
        return even_starts(latencies, duration), (
            "the file has no times of sending, and arrivals at a rate are random: requests are placed evenly over its "
            "duration, so requests in flight are not the tool's"
        )
    starts = closed_loop_starts(latencies, load.max_concurrency)
    whole = last_end(starts, latencies)
    if abs(whole - duration) <= DURATION_TOLERANCE * duration:
        return starts, "the file has no times of sending: they are derived from the latencies and the concurrency"
    return starts, (
        "the file has no times of sending: requests are placed one after another at the concurrency, which takes "
        f"{formats.seconds(whole)} instead of {formats.seconds(duration)}, so throughput is not the tool's"
    )


def _not_carried(lists: Mapping[str, list[Any]], server: Mapping[str, Any]) -> Iterator[str]:
    if any(lists.get("generated_texts", ())):
        yield "generated_texts"
    if any(lists.get("cached_tokens", ())):
        yield "cached_tokens"
    if any("\n" in str(each).strip() for each in lists.get("errors", ())):
        yield "errors before their last line"
    if server:
        yield "server_info beyond model and tokenizer"


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""
