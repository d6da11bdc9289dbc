"""Reads the individual responses of LLMPerf, a list with one object per request, and the summary beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.recordings.format.request_codec import last_known_at
from servetop.run.imports.imported_result import ImportedLoad, ImportedResult
from servetop.run.imports.number_lists import count_in, seconds_in, time_in
from servetop.run.imports.placed_times import EVEN_CHUNKS, closed_loop_starts, even_chunks, last_end, wave_starts

TOOL = "LLMPerf"
_LATENCY, _TTFT, _RATE = "end_to_end_latency_s", "ttft_s", "request_output_throughput_token_per_s"
_OUTPUT, _PROMPT = "number_output_tokens", "number_input_tokens"
_LARGEST_SUMMARY = 16 * 2**20
_CONTRADICTION = 0.01
"""Relative difference from which tokens/s contradict tokens and latency."""


def is_llmperf_file(document: Any) -> bool:
    """Whether a JSON value is a list of responses, or the summary of a run."""
    if isinstance(document, Mapping):
        return f"results_{_TTFT}_mean" in document or f"results_{_TTFT}_quantiles_p50" in document
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, Mapping) and _LATENCY in first and _TTFT in first


def read_llmperf_responses(document: Any, path: Path) -> list[ImportedResult]:
    """Return the run of some responses; UsageError for a summary, or if values make no sense."""
    if isinstance(document, Mapping):
        raise UsageError("it has statistics but no requests: give the file of individual responses beside it")
    if not isinstance(document, list) or not document or not all(isinstance(each, Mapping) for each in document):
        raise UsageError("it is not a list of responses: is the file damaged?")
    summary = _summary(path)
    latencies = seconds_in([row.get(_LATENCY) for row in document], _LATENCY)
    limit = summary.get("num_concurrent_requests")
    limit = limit if isinstance(limit, int) and limit > 0 else None
    starts, remark = _starts(latencies, limit, _duration(summary))
    requests = [_request(row, number, starts[number]) for number, row in enumerate(document)]
    seconds_in([*map(last_known_at, requests)], "the end")
    time = summary.get("timestamp")
    end = float(time) if isinstance(time, int | float) and time > 0 else None
    result = ImportedResult(
        tool=TOOL,
        version=_text(summary.get("version")) or None,
        requests=requests,
        load=ImportedLoad(max_concurrency=1 if limit is None else limit),
        backend=_text(summary.get("framework")) or "unknown",
        model=_text(summary.get("model")),
        endpoint="chat",
        wall_epoch_s=None if end is None else end - max(map(last_known_at, requests)),
        times_known=False,
        not_carried=[
            "inter_token_latency_s (it includes the time to the first token)",
            *(["GEN_TEXT"] if any(row.get("GEN_TEXT") for row in document) else []),
        ],
        remarks=[remark, EVEN_CHUNKS, *_contradictions(document)],
    )
    return [result]


def _request(row: Mapping[str, Any], number: int, sent: float) -> RequestRecord:
    """Return the request as servetop records it; one that failed may have no latency at all."""
    what = f"of request {number + 1}"
    ttft, latency = (time_in(row.get(name), f"{name} {what}") for name in (_TTFT, _LATENCY))
    tokens, prompt = (count_in(row.get(name), f"{name} {what}") for name in (_OUTPUT, _PROMPT))
    if latency < ttft:
        raise UsageError(f"{_LATENCY} {what} is below its {_TTFT}: is the file damaged?")
    code = row.get("error_code")
    ok = code is None and latency > 0
    chunks = even_chunks(sent + ttft, sent + latency, tokens) if ttft and tokens else np.empty(0)
    message = " ".join(_text(row.get("error_msg")).split())
    return RequestRecord(
        id=number,
        stage=0,
        due=sent,
        sent=sent,
        first_token_at=sent + ttft if chunks.size else None,
        done_at=sent + latency if latency else None,
        prompt_tokens=prompt,
        output_tokens=tokens if ok else chunks.size,
        status=RequestStatus.OK if ok else RequestStatus.ERROR,
        error=None if ok else message or f"failed with error_code {code}, without a reason in the file",
        http_status=code if isinstance(code, int) and 400 <= code < 600 else None,
        chunk_times=chunks,
        chunk_tokens=np.broadcast_to(np.int64(1), chunks.shape),
    )


def _starts(latencies: list[float], limit: int | None, duration: float | None) -> tuple[list[float], str]:
    """Return when each request was sent, in seconds, and how that was found."""
    if limit is None:
        return closed_loop_starts(latencies, 1), (
            "the file has no times of sending, and no summary is beside it: requests are placed one after "
            "another, so throughput and requests in flight are not the tool's"
        )
    waves = None if duration is None else wave_starts(latencies, limit, duration)
    if waves is not None:
        return waves, (
            f"the file has no times of sending: requests are placed in waves of {limit}, with equal pauses after them "
            "that make up the duration in the summary, so requests in flight are not the tool's"
        )
    starts = closed_loop_starts(latencies, limit)
    instead = "" if duration is None else f" instead of {formats.seconds(duration)}"
    return starts, (
        f"the file has no times of sending: requests are placed one after another, {limit} at a time, which takes "
        f"{formats.seconds(last_end(starts, latencies))}{instead}, so throughput is not the tool's"
    )


def _duration(summary: Mapping[str, Any]) -> float | None:
    """Return the seconds of the run, of which the summary has the requests completed per minute."""
    count, rate = (summary.get(f"results_num_completed_requests{suffix}") for suffix in ("", "_per_min"))
    if not isinstance(count, int) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
        return None
    return 60.0 * count / rate


def _contradictions(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a remark if the tokens/s of requests are not their tokens by their latency."""
    factors = [
        row[_RATE] * row[_LATENCY] / row[_OUTPUT]
        for row in rows
        if isinstance(row.get(_RATE), int | float) and row[_LATENCY] and row[_OUTPUT]
    ]
    wrong = [each for each in factors if abs(each - 1) > _CONTRADICTION]
    if wrong:
        yield (
            f"{_RATE} of {counted(len(wrong), 'request')} contradicts {_OUTPUT} and {_LATENCY} (median factor "
            f"{np.median(wrong):.3g}): tokens/s are computed from the latter"
        )


def _summary(path: Path) -> Mapping[str, Any]:
    """Return the summary of the same run in the same folder; empty if it is not there."""
    names = {path.name.replace("individual_responses", "summary"), path.name.replace("individual", "summary")}
    for name in names - {path.name}:
        try:
            with path.with_name(name).open("rb") as file:
                found = orjson.loads(file.read(_LARGEST_SUMMARY))
        except (OSError, ValueError):
            continue
        if isinstance(found, Mapping):
            return found
    return {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
