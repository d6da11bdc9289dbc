"""A stage as the result file of `vllm bench serve --save-result --save-detailed` (vLLM 0.32)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from servetop.core.config import STANDARD_PERCENTILES
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.units import MS_PER_S, NS_PER_S
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.row_formats import json_object
from servetop.reports.export.stage_rows import (
    ExportedStage,
    chunk_gaps,
    failure_text,
    requests_of,
    statistics,
)

NOT_CARRIED = (
    "engine, GPU and tick samples",
    "warm-ups and cool-downs",
    "cached and reasoning tokens",
    "tokens of each chunk (ITL is per chunk, and TPOT takes the first chunk for one token, as in vLLM)",
    "cancelled requests as such (they are failed)",
)
"""What a result file of vLLM cannot hold."""


def vllm_result(reader: RecordingReader, stage: ExportedStage) -> Iterator[str]:
    """Yield the text of a result; its statistics are vLLM's, computed from its own lists."""
    requests = requests_of(reader, stage)
    return json_object(
        itertools.chain(
            _set_up(stage),
            _totals(stage, requests),
            _details(stage, requests),
            _peaks(stage),
            _statistics(stage, requests),
        )
    )


def _set_up(stage: ExportedStage) -> Iterator[tuple[str, object]]:
    """Yield what was run, with metadata where vLLM has it; a key of the result replaces metadata of the same name."""
    set_up, change = stage.run.set_up, stage.stage
    for name in ("date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id"):
        yield name, getattr(set_up, name)
    yield "num_prompts", change.measured.requests.num_prompts
    yield from ((key, value) for key, value in set_up.metadata.items() if key not in RESULT_KEYS)
    yield "request_rate", change.request_rate
    yield "burstiness", set_up.burstiness
    yield "max_concurrency", change.max_concurrency
    if set_up.ramp is not None:
        yield "ramp_up_strategy", set_up.ramp.ramp_up_strategy
        yield "ramp_up_start_rps", set_up.ramp.ramp_up_start_rps
        yield "ramp_up_end_rps", set_up.ramp.ramp_up_end_rps


def _totals(stage: ExportedStage, requests: list[RequestRecord]) -> Iterator[tuple[str, object]]:
    totals = stage.stage.measured.requests
    yield "duration", totals.duration
    yield "completed", totals.completed
    yield "failed", len(requests) - totals.completed
    for name in (
        "total_input_tokens", "total_output_tokens", "request_throughput", "request_goodput", "output_throughput",
        "total_token_throughput",
    ):  # fmt: skip
        yield name, getattr(totals, name)


def _details(stage: ExportedStage, requests: list[RequestRecord]) -> Iterator[tuple[str, object]]:
    """Yield a list per key with one value per request; seconds, and 0 for a time that was not reached."""
    origin = stage.header.anchor.origin_ns / NS_PER_S
    yield "input_lens", (each.prompt_tokens for each in requests)
    yield "output_lens", (each.output_tokens if each.status is RequestStatus.OK else 0 for each in requests)
    yield "ttfts", (each.ttft or 0.0 for each in requests)
    yield "itls", (chunk_gaps(each) for each in requests)
    yield "latencies", (each.e2el or 0.0 for each in requests)
    yield "start_times", (origin + (each.due if each.sent is None else each.sent) for each in requests)
    yield "queue_times", (_queue_time(each) for each in requests)
    yield "generated_texts", (each.output_text or "" for each in requests)
    yield "errors", (failure_text(each) for each in requests)


def _peaks(stage: ExportedStage) -> Iterator[tuple[str, object]]:
    totals = stage.stage.measured.requests
    yield "max_output_tokens_per_s", totals.max_output_tokens_per_s
    yield "max_concurrent_requests", totals.max_concurrent_requests
    yield "rtfx", 0.0  # audio only


def _statistics(stage: ExportedStage, requests: list[RequestRecord]) -> Iterator[tuple[str, object]]:
    served = [each for each in requests if each.status is RequestStatus.OK]
    percentiles = dict.fromkeys((*STANDARD_PERCENTILES, *stage.header.config.metric_percentiles))
    metrics: dict[str, list[float | None]] = {
        "ttft": [each.ttft for each in served],
        "tpot": [_tpot(each) for each in served],
        "itl": [gap for each in served for gap in chunk_gaps(each)],
        "e2el": [each.e2el for each in served],
    }
    if stage.stage.max_concurrency is not None:
        metrics["client_queue_time"] = [_queue_time(each) for each in served]
    for metric, values in metrics.items():
        for name, value in statistics(values, percentiles).items():
            yield f"{name}_{metric}_ms", value * MS_PER_S


def _queue_time(request: RequestRecord) -> float:
    return 0.0 if request.sent is None else request.sent - request.due


def _tpot(request: RequestRecord) -> float | None:
    """Return (latency − TTFT) / (output tokens − 1) in seconds, vLLM's definition; None for a single token."""
    if request.ttft is None or request.e2el is None or request.output_tokens < 2:
        return None
    return (request.e2el - request.ttft) / (request.output_tokens - 1)


RESULT_KEYS = frozenset(
    (
        "date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate",
        "burstiness", "max_concurrency", "ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps", "duration",
        "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput", "request_goodput",
        "output_throughput", "total_token_throughput", "input_lens", "output_lens", "ttfts", "itls", "latencies",
        "start_times", "queue_times", "generated_texts", "errors", "max_output_tokens_per_s",
        "max_concurrent_requests", "rtfx",
        *(
            f"{statistic}_{metric}_ms"
            for statistic in ("mean", "median", "std", *(f"p{q:.12g}" for q in STANDARD_PERCENTILES))
            for metric in ("ttft", "tpot", "itl", "e2el", "client_queue_time")
        ),
    )
)  # fmt: skip
"""Keys that metadata cannot replace."""
