"""Reads `profile_export.jsonl` of AIPerf, a record per request, and the summary of the load beside it."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from servetop.core.arrays import FloatArray
from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.units import NS_PER_S
from servetop.recordings.format.request_codec import last_known_at
from servetop.run.imports.imported_result import ImportedLoad, ImportedResult
from servetop.run.imports.loop_kind import is_open_loop
from servetop.run.imports.number_lists import count_in, seconds_in, time_in
from servetop.run.imports.reported_figures import aiperf_figures

TOOL = "AIPerf"
SUMMARY_FILE = "profile_export_aiperf.json"
_TTFT = ("time_to_first_token", "ttft")
"""Its name now, and until autumn 2025."""
_SENT = ("request_start_ns", "timestamp_ns")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}
_CANCELLED = 499
_LARGEST_SUMMARY = 16 * 2**20
_LATEST = 2**63 - 1


def is_aiperf_record(row: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a record of `profile_export.jsonl`."""
    metadata = row.get("metadata")
    return isinstance(metadata, Mapping) and "metrics" in row and "x_request_id" in metadata


def read_aiperf_records(rows: Iterator[Mapping[str, Any]], path: Path) -> ImportedResult:
    """Return the run of some records, and of the summary in their folder; UsageError for values that make no sense."""
    left_out: Counter[str] = Counter()
    found = []
    for line, row in enumerate(rows, start=1):
        with _in_record(line):
            record = _Record(row, line)
        found += [record] if record.is_measured(left_out) else []
    if not found:
        raise UsageError("it has no requests of the phase profiling")
    origin = min(each.due for each in found)
    found.sort(key=lambda each: each.due)
    requests: list[RequestRecord] = []
    for each in found:
        with _in_record(each.line):
            requests.append(each.request(len(requests), origin))
    seconds_in([*map(last_known_at, requests)], "the end")
    summary, remarks = _summary(path.with_name(SUMMARY_FILE))
    set_up = _table(summary, "input_config")
    api = _table(set_up, "endpoint").get("type")
    return ImportedResult(
        tool=TOOL,
        version=_text(summary.get("aiperf_version")) or None,
        requests=requests,
        load=_load(set_up, requests),
        backend="openai" if api in ("chat", "completions") else _text(api) or "unknown",
        model=_model(set_up),
        endpoint="chat" if api == "chat" else "completions",
        wall_epoch_s=origin / NS_PER_S,
        reported=aiperf_figures(summary),
        not_carried=[f"{what} ({count:,})" for what, count in left_out.items()],
        remarks=remarks,
    )


@contextlib.contextmanager
def _in_record(line: int) -> Iterator[None]:
    """Say in which record a value makes no sense."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"record {line}: {error}") from error


class _Record:
    """One record; its stamps are Unix time in nanoseconds."""

    def __init__(self, row: Mapping[str, Any], line: int) -> None:
        self.line = line
        self._metadata, self._metrics = _table(row, "metadata"), _table(row, "metrics")
        self._error = row.get("error")
        sent = next((self._metadata[name] for name in _SENT if self._metadata.get(name) is not None), None)
        credit = self._metadata.get("credit_issued_ns")
        self._sent = _stamp(sent)
        self.due = self._sent if credit is None else min(_stamp(credit), self._sent)

    def is_measured(self, left_out: Counter[str]) -> bool:
        """Whether the request is one of the measured phase; count what a recording has no place for."""
        phase = self._metadata.get("benchmark_phase") or self._metadata.get("credit_phase") or "profiling"
        if phase != "profiling":
            left_out["requests of the warm-up"] += 1
            return False
        if self._metadata.get("turn_index"):
            left_out["the conversation of later turns"] += 1
        return True

    def request(self, number: int, origin: int) -> RequestRecord:
        """Return the request as servetop records it, with seconds since `origin`."""
        sent = (self._sent - origin) / NS_PER_S
        status, error, code = self._end()
        latency, ttft = self._seconds("request_latency"), self._seconds(*_TTFT)
        end = self._metadata.get("request_end_ns")
        done = sent + latency if latency is not None else None if end is None else (_stamp(end) - origin) / NS_PER_S
        chunks = self._chunks(sent, ttft, done)
        first_output, reasoning = self._seconds("time_to_first_output_token"), self._tokens("reasoning_token_count")
        return RequestRecord(
            id=number,
            stage=0,
            due=(self.due - origin) / NS_PER_S,
            sent=sent,
            headers_at=self._instant("request_ack_ns", origin),
            first_token_at=None if ttft is None else sent + ttft,
            done_at=done,
            prompt_tokens=self._tokens("input_sequence_length", "error_isl"),
            output_tokens=self._tokens("output_sequence_length") or chunks.size,
            status=status,
            error=error,
            http_status=code,
            chunk_times=chunks,
            chunk_tokens=np.broadcast_to(np.int64(1), chunks.shape),
            first_output_at=sent + first_output if reasoning and first_output is not None else None,
            reasoning_tokens=reasoning or None,
        )

    def _chunks(self, sent: float, ttft: float | None, done: float | None) -> FloatArray:
        if ttft is None:
            return np.empty(0)
        times = sent + ttft + np.concatenate([[0.0], np.cumsum(self._gaps())])
        return times if done is None else np.minimum(times, done)

    def _end(self) -> tuple[RequestStatus, str | None, int | None]:
        """Return how the request ended, why, and the HTTP status."""
        if self._error is None:
            return RequestStatus.OK, None, None
        error = self._error if isinstance(self._error, Mapping) else {}
        parts = (_text(error.get(key)).strip() for key in ("type", "message"))
        text = ": ".join(filter(None, parts)).replace("\n", " ") or "failed, without a reason in the file"
        code = error.get("code")
        if self._metadata.get("was_cancelled") or code == _CANCELLED:
            return RequestStatus.CANCELLED, text, None
        timeout = "timeout" in _text(error.get("type")).lower()
        status = RequestStatus.TIMEOUT if timeout else RequestStatus.ERROR
        return status, text, code if isinstance(code, int) and 400 <= code < 600 else None

    def _instant(self, name: str, origin: int) -> float | None:
        value = self._metadata.get(name)
        return None if value is None else (_stamp(value) - origin) / NS_PER_S

    def _seconds(self, *names: str) -> float | None:
        for name in names:
            found = self._metrics.get(name)
            if isinstance(found, Mapping) and found.get("value") is not None:
                return self._in_seconds([found["value"]], found, name)[0]
        return None

    def _gaps(self) -> list[float]:
        found = _table(self._metrics, "inter_chunk_latency")
        values = found.get("value")
        return self._in_seconds(values, found, "inter_chunk_latency") if isinstance(values, list) else []

    def _in_seconds(self, values: list[Any], metric: Mapping[str, Any], name: str) -> list[float]:
        unit = _SECONDS.get(_text(metric.get("unit")))
        if unit is None:
            raise UsageError(f"{name} is in {str(metric.get('unit'))[:20]}: ns, us, ms or sec is needed")
        return [time_in(each, name, most=_LATEST) * unit for each in values]

    def _tokens(self, *names: str) -> int:
        for name in names:
            found = self._metrics.get(name)
            value = found.get("value") if isinstance(found, Mapping) else found
            if value is not None:
                return count_in(value, name)
        return 0


def _stamp(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LATEST:
        raise UsageError(f"{str(value)[:40]} is not a Unix time in nanoseconds")
    return value


def _summary(path: Path) -> tuple[Mapping[str, Any], list[str]]:
    """Return the summary beside the records; without one a remark."""
    try:
        with path.open("rb") as file:
            found = orjson.loads(file.read(_LARGEST_SUMMARY))
    except (OSError, ValueError):
        found = None
    if isinstance(found, Mapping):
        known = bool(_table(found, "input_config"))
        return found, [] if known else [f"{SUMMARY_FILE} has no input_config: model, rate and concurrency are unknown"]
    return {}, [f"there is no {SUMMARY_FILE} beside the file: model, rate and concurrency are unknown"]


def _model(set_up: Mapping[str, Any]) -> str:
    """Return the first model: a name of the endpoint, or in newer exports an item of the models."""
    names = _table(set_up, "endpoint").get("model_names") or _table(set_up, "models").get("items")
    first = names[0] if isinstance(names, list) and names else None
    return _text(first.get("name") if isinstance(first, Mapping) else first)


def _load(set_up: Mapping[str, Any], requests: Sequence[RequestRecord]) -> ImportedLoad:
    """Return the load of the profile: of the load generator, or in newer exports of its phase; else by its times."""
    phases = set_up.get("phases")
    profiles = [each for each in phases if isinstance(each, Mapping)] if isinstance(phases, list) else []
    phase = next((each for each in profiles if each.get("kind", each.get("name")) == "profiling"), {})
    loadgen = {**_table(set_up, "loadgen"), **phase}
    rate, limit = loadgen.get("request_rate", loadgen.get("rate")), loadgen.get("concurrency")
    load = ImportedLoad(
        request_rate=float(rate) if isinstance(rate, int | float) and rate > 0 else math.inf,
        max_concurrency=limit if isinstance(limit, int) and limit > 0 else None,
    )
    return load if load.is_limited else ImportedLoad(scheduled=is_open_loop(requests))


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
