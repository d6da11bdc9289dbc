"""Reads `per_request_lifecycle_metrics.json` of inference-perf, a list with one object per request."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.units import NS_PER_S
from servetop.recordings.format.request_codec import last_known_at
from servetop.run.imports.imported_result import ImportedLoad, ImportedResult
from servetop.run.imports.loop_kind import is_open_loop
from servetop.run.imports.number_lists import count_in, seconds_in, time_in

TOOL = "inference-perf"
_NO_DUE = (
    "the file has neither the rate nor when requests were due: each counts as due when it was sent, and the load is "
    "shown as one without a rate"
)
_HTTP_STATUS = re.compile(r"HTTP Error ([45]\d\d)")
_CLOCK = 1e10
"""Most seconds that a clock of the sender shows."""


def is_inference_perf_file(document: Any) -> bool:
    """Whether a JSON value is a list of requests, or a summary of a run or stage."""
    if isinstance(document, Mapping):
        return "load_summary" in document and "successes" in document
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, Mapping) and "start_time" in first and "end_time" in first and "error" in first


def read_inference_perf_records(document: Any, _: Path) -> list[ImportedResult]:
    """Return the run of some requests; UsageError for a summary, or if values make no sense."""
    if isinstance(document, Mapping):
        raise UsageError(
            "it has statistics but no requests: give per_request_lifecycle_metrics.json, which inference-perf writes "
            "with report.request_lifecycle.per_request"
        )
    if not isinstance(document, list) or not document or not all(isinstance(each, Mapping) for each in document):
        raise UsageError("it is not a list of requests: is the file damaged?")
    starts = [
        time_in(row.get("start_time"), f"start_time {_of(number)}", most=_CLOCK) for number, row in enumerate(document)
    ]
    origin = min(starts)
    order = sorted(range(len(document)), key=lambda row: (starts[row], row))
    requests = [_Request(document[row], row).record(number, origin) for number, row in enumerate(order)]
    seconds_in([*map(last_known_at, requests)], "the end")
    body = _body(document[0])
    result = ImportedResult(
        tool=TOOL,
        requests=requests,
        load=ImportedLoad(scheduled=is_open_loop(requests)),
        backend="unknown",
        model=_text(body.get("model")),
        endpoint="chat" if "messages" in body else "completions",
        origin_ns=round(origin * NS_PER_S),
        not_carried=[f"{what} ({count:,})" for what, count in _left_out(document).items()],
        remarks=[_NO_DUE, *_other_counts(document)],
    )
    return [result]


class _Request:
    """One request of the file; its stamps are those of a monotonic clock, in seconds."""

    def __init__(self, row: Mapping[str, Any], number: int) -> None:
        self._what = _of(number)
        self._row = row
        info = row.get("info")
        self._error = _table(row, "error")
        if not isinstance(info, Mapping):
            raise UsageError(f"info {self._what} is absent: repeat the benchmark with per_request_fields.info")
        self._response = _table(info, "response_metrics")
        self._prompt = _table(_table(info, "request_metrics"), "text").get("input_tokens", info.get("input_tokens"))

    def record(self, number: int, origin: float) -> RequestRecord:
        """Return the request as servetop records it, with seconds since `origin`."""
        sent, end = (
            time_in(self._row.get(name), f"{name} {self._what}", most=_CLOCK) - origin
            for name in ("start_time", "end_time")
        )
        stamps = self._response.get("chunk_times") or self._response.get("output_token_times") or []
        if not isinstance(stamps, list):
            raise UsageError(f"chunk_times {self._what} is not a list: is the file damaged?")
        chunks = np.array([time_in(each, f"chunk_times {self._what}", most=_CLOCK) for each in stamps]) - origin
        if chunks.size and not (sent <= chunks[0] and np.all(np.diff(chunks) >= 0) and chunks[-1] <= end):
            raise UsageError(f"chunk_times {self._what} are not in order: is the file damaged?")
        ok = not self._error
        usage = _table(self._response, "server_usage")
        tokens = usage.get("completion_tokens") or self._response.get("output_tokens") or 0
        code = _HTTP_STATUS.fullmatch(_text(self._error.get("error_type")))
        return RequestRecord(
            id=number,
            stage=0,
            due=sent,
            sent=sent,
            first_token_at=float(chunks[0]) if chunks.size else None,
            done_at=end,
            prompt_tokens=count_in(usage.get("prompt_tokens") or self._prompt or 0, f"input_tokens {self._what}"),
            output_tokens=count_in(tokens, f"output_tokens {self._what}") if ok else chunks.size,
            status=RequestStatus.OK if ok else RequestStatus.ERROR,
            error=None if ok else self._reason(),
            http_status=int(code[1]) if code else None,
            chunk_times=chunks,
            chunk_tokens=np.broadcast_to(np.int64(1), chunks.shape),
        )

    def _reason(self) -> str:
        parts = (" ".join(_text(self._error.get(key)).split()) for key in ("error_type", "error_msg"))
        return ": ".join(filter(None, parts)) or "failed, without a reason in the file"


def _left_out(document: list[Mapping[str, Any]]) -> Counter[str]:
    """Count what a recording has no place for."""
    found: Counter[str] = Counter()
    for row in document:
        found.update(name for name in ("request", "response", "computed_metrics") if row.get(name))
        info = _table(row, "info")
        found.update(name for name in ("lora_adapter", "labels", "retries_attempted") if info.get(name))
    return found


def _other_counts(document: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a remark where the server's count of output tokens is not that of inference-perf's tokenizer."""
    other = 0
    for row in document:
        response = _table(_table(row, "info"), "response_metrics")
        counted = _table(response, "server_usage").get("completion_tokens")
        other += counted is not None and counted != response.get("output_tokens")
    if other:
        yield (
            f"in {other:,} of {len(document):,} requests inference-perf's tokenizer counts other output tokens than "
            "the server: the server's count is taken, so TPOT and ITL are not inference-perf's"
        )


def _body(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the body of a request; empty without one."""
    found = None
    with contextlib.suppress(orjson.JSONDecodeError):
        found = orjson.loads(_text(row.get("request")))
    return found if isinstance(found, Mapping) else {}


def _of(number: int) -> str:
    return f"of request {number + 1}"


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
