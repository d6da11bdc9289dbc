"""The columns of exported tables: name with unit, meaning and value, declared once for every format and the docs."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from servetop.core.events import EngineSample, GpuSample, RequestRecord


@dataclass(frozen=True, slots=True)
class ExportedColumn:
    """One column of a table."""

    name: str
    """Unique in its table; ends with the unit, unless it is a count of what the name says, a name or an index."""
    meaning: str
    """For the docs: a phrase without a full stop."""
    value: Callable[[Any], Any]
    """Returns the value of one row; a list only where a column is for JSON Lines alone."""


def field(name: str, meaning: str, *, source: str | None = None) -> ExportedColumn:
    """Return the column of an attribute, which has the column's name unless `source` names it."""
    return ExportedColumn(name, meaning, operator.attrgetter(source or name))


@dataclass(frozen=True, slots=True)
class ExportedRequest:
    """A row of the requests."""

    request: RequestRecord
    counted: bool
    """Whether it is in the totals of the run."""


def _of(name: str, meaning: str, *, source: str | None = None) -> ExportedColumn:
    return field(name, meaning, source=f"request.{source or name}")


def _relative_times(row: ExportedRequest) -> list[float]:
    """Return the arrival of each chunk in seconds since the request was sent, to the microsecond of the recording."""
    request = row.request
    base = request.due if request.sent is None else request.sent
    return [round(each, 6) for each in (request.chunk_times - base).tolist()]


REQUEST_COLUMNS = (
    _of("id", "number of the request, in the order in which they were due"),
    _of("stage", "number of the stage in which it was due"),
    field("counted", "whether it is in the totals of the run: no warm-up, cool-down or repeated attempt"),
    _of("status", "`ok`, `error`, `timeout`, `cancelled` or `truncated`"),
    _of("due_s", "when the schedule wanted it sent, since the start of the run", source="due"),
    _of("sent_s", "when its bytes were passed to the socket", source="sent"),
    _of("headers_s", "when the headers of the response had arrived", source="headers_at"),
    _of("first_token_s", "first chunk with content", source="first_token_at"),
    _of("first_output_s", "first token after the model's reasoning", source="first_output_at"),
    _of("done_s", "last byte", source="done_at"),
    _of("ttft_s", "time to first token: first_token_s − sent_s", source="ttft"),
    _of("ttfot_s", "the same to the first token after reasoning", source="ttfot"),
    _of("tpot_s", "time per output token after those of the first chunk", source="tpot"),
    _of("e2el_s", "end-to-end latency: done_s − sent_s", source="e2el"),
    _of("prompt_tokens", "tokens of the prompt"),
    _of("output_tokens", "tokens of the completion"),
    _of("cached_tokens", "prompt tokens found in the prefix cache"),
    _of("reasoning_tokens", "output tokens that were reasoning"),
    _of("required_tokens", "output tokens that the request demanded"),
    _of("token_source", "where the counts come from: `usage`, `tokenizer`, `chunks`, `estimate` or `disputed`"),
    ExportedColumn("chunks", "chunks with content", lambda each: int(each.request.chunk_times.size)),
    _of("error", "why it failed, in one line"),
    _of("http_status", "the status of the response, where there was one"),
    _of("worker", "number of the sender"),
    _of("replica", "which of several servers it was sent to, from 0"),
    _of("model", "which of several models it named"),
    _of("conversation", "id of the first request of its conversation"),
    _of("turn", "which turn of the conversation it is, from 1"),
    _of("server_queue_s", "time in the engine's queue, as reported with the response", source="server_queue"),
    _of("server_prefill_s", "from being scheduled to the first token, as reported", source="server_prefill"),
    _of("server_decode_s", "from the first token to the last, as reported", source="server_decode"),
)
REQUEST_LISTS = (
    ExportedColumn("chunk_times_s", "arrival of each chunk since sent_s", _relative_times),
    ExportedColumn("chunk_tokens", "tokens of each chunk", lambda each: each.request.chunk_tokens.tolist()),
    _of("prompt_text", "the prompt, only with `--store-texts`"),
    _of("output_text", "the completion, only with `--store-texts`"),
)
"""Columns that do not fit into a cell of a spreadsheet: lists and long texts."""

_SAMPLE_MEANINGS = {
    "scrape_start": ("scrape_start_s", "when the scrape began, since the start of the run"),
    "scrape_end": ("scrape_end_s", "when it ended"),
    "running": ("running_requests", "sequences in the batch"),
    "waiting": ("waiting_requests", "requests in the engine's queue"),
    "kv_blocks_used": ("kv_blocks_used", "KV blocks in use"),
    "kv_blocks_total": ("kv_blocks_total", "KV blocks of the cache"),
    "kv_usage": ("kv_usage_ratio", "KV blocks in use, 0 to 1"),
    "preemptions_total": ("preemptions_total", "preemptions"),
    "prompt_tokens_total": ("prompt_tokens_total", "prompt tokens processed"),
    "generation_tokens_total": ("generation_tokens_total", "tokens generated"),
    "prefix_cache_hits_total": ("prefix_cache_hit_tokens_total", "tokens found in the prefix cache"),
    "prefix_cache_queries_total": ("prefix_cache_query_tokens_total", "tokens looked up in it"),
    "requests_finished_total": ("requests_finished_total", "requests that finished"),
    "max_num_seqs": ("max_num_seqs", "limit of the batch"),
    "first_token_seconds_total": ("first_token_seconds_total", "sum of the engine's times to first token"),
    "first_tokens_total": ("first_tokens_total", "requests in that sum"),
    "queue_seconds_total": ("queue_seconds_total", "sum of the times in the queue"),
    "queued_requests_total": ("queued_requests_total", "requests in that sum"),
    "prefill_seconds_total": ("prefill_seconds_total", "sum of the times from being scheduled to the first token"),
    "prefilled_requests_total": ("prefilled_requests_total", "requests in that sum"),
    "tpot_seconds_total": ("tpot_seconds_total", "sum of the requests' mean times per output token"),
    "tpot_requests_total": ("tpot_requests_total", "requests in that sum"),
    "e2el_seconds_total": ("e2el_seconds_total", "sum of the times from arrival to the end"),
    "e2el_requests_total": ("e2el_requests_total", "requests in that sum"),
    "requests_ended_total": ("requests_ended_total", "requests that were served, refused or failed"),
    "requests_failed_total": ("requests_failed_total", "requests that the server failed or refused"),
}
ENGINE_COLUMNS = tuple(
    field(*_SAMPLE_MEANINGS[each.name], source=each.name) for each in dataclasses.fields(EngineSample)
)
"""Counters (`_total`) are the engine's raw values: they start anywhere, and fall to 0 at a restart."""

_GPU_MEANINGS = {
    "at": ("at_s", "when it was read, since the start of the run"),
    "index": ("gpu", "number of the device"),
    "name": ("name", "its model"),
    "utilisation": ("utilisation_ratio", "share of the time with a kernel running, 0 to 1"),
    "memory_used": ("memory_used_bytes", "memory in use"),
    "memory_total": ("memory_total_bytes", "memory of the device"),
    "power": ("power_watts", "power draw"),
    "temperature": ("temperature_celsius", "temperature"),
    "sm_clock": ("sm_clock_hertz", "clock of the multiprocessors"),
    "memory_clock": ("memory_clock_hertz", "clock of the memory"),
    "engine_memory": ("engine_memory_bytes", "memory of the engine's processes"),
    "energy": ("energy_joules_total", "the device's energy counter"),
    "throttled": ("throttled", "why its clocks are lowered; empty if they are not"),
}
GPU_COLUMNS = tuple(field(*_GPU_MEANINGS[each.name], source=each.name) for each in dataclasses.fields(GpuSample))
