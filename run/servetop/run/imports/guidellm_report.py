"""Reads `benchmarks.json` of guidellm (0.5 and later), whose benchmarks have their requests."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.text.counted import counted
from servetop.recordings.format.request_codec import last_known_at
from servetop.run.imports.imported_result import MAX_SECONDS, ImportedLoad, ImportedResult
from servetop.run.imports.number_lists import count_in, positive_number, seconds_in, time_in
from servetop.run.imports.placed_times import EVEN_CHUNKS, even_chunks
from servetop.run.imports.reported_figures import guidellm_figures

TOOL = "guidellm"
_STATUSES = {
    "successful": RequestStatus.OK,
    "incomplete": RequestStatus.CANCELLED,
    "errored": RequestStatus.ERROR,
}
_SCHEDULED = frozenset(("constant", "poisson", "trace"))
"""Strategies whose `targeted_start` is when a request was due."""
_HTTP_STATUS = re.compile(r"(?:error '|^HTTP )([45]\d\d)([^']*)")
_LATEST = 1e11
"""Latest Unix time, in seconds."""


def is_guidellm_report(document: Any) -> bool:
    """Whether a JSON value is a report of guidellm, with or without its requests."""
    if not isinstance(document, Mapping):
        return False
    metadata = document.get("metadata")
    return (
        isinstance(document.get("benchmarks"), list)
        and isinstance(metadata, Mapping)
        and "guidellm_version" in metadata
    )


def read_guidellm_report(document: Any, _: Path) -> list[ImportedResult]:
    """Return the run of each benchmark; UsageError if one has no requests, or if its values make no sense."""
    found = document.get("benchmarks") if isinstance(document, Mapping) else None
    if not isinstance(found, list) or not found or not all(isinstance(each, Mapping) for each in found):
        raise UsageError("it has no benchmarks: give a benchmarks.json of a finished run")
    version = _text(_table(document, "metadata").get("guidellm_version")) or None
    results = []
    for number, benchmark in enumerate(found, start=1):
        try:
            results.append(_result(benchmark, version))
        except UsageError as error:
            raise UsageError(f"benchmark {number}: {error}") from error
    return results


def _result(benchmark: Mapping[str, Any], version: str | None) -> ImportedResult:
    config, left_out = _table(benchmark, "config"), Counter[str]()
    strategy, backend = _table(config, "strategy"), _table(config, "backend")
    name = _text(strategy.get("type_"))
    rows = [_Row(*each, scheduled=name in _SCHEDULED) for each in _rows(_table(benchmark, "requests"), left_out)]
    if not rows:
        raise UsageError("it has statistics but no requests: repeat it without a sample size of 0")
    rows.sort(key=lambda each: (each.due, each.sent))
    origin = min(each.due for each in rows)
    requests = [each.request(number, origin) for number, each in enumerate(rows)]
    seconds_in([*map(last_known_at, requests)], "the end")
    return ImportedResult(
        tool=TOOL,
        version=version,
        requests=requests,
        load=_load(strategy),
        backend=_text(backend.get("type_")) or _text(backend.get("kind")) or "unknown",
        model=_text(backend.get("model")),
        label=name,
        endpoint="chat" if "chat" in _text(backend.get("request_format")) else "completions",
        wall_epoch_s=origin,
        reported=guidellm_figures(_table(benchmark, "metrics")),
        not_carried=[f"{what} ({count:,})" for what, count in left_out.items()],
        remarks=[EVEN_CHUNKS, *_without_due(rows, name), *_sampled(benchmark, requests)],
    )


def _rows(groups: Mapping[str, Any], left_out: Counter[str]) -> Iterator[tuple[Mapping[str, Any], RequestStatus]]:
    """Yield the requests that were sent, with how they ended; count what a recording has no place for."""
    for group, status in _STATUSES.items():
        values = groups.get(group) or ()
        for row in values if isinstance(values, list) else ():
            if not isinstance(row, Mapping):
                raise UsageError(f"a request of {group} is not an object: is the file damaged?")
            info = _table(row, "info")
            if _table(info, "timings").get("request_start") is None:
                left_out["requests that were never sent"] += 1
                continue
            left_out.update({"the conversation of later turns": 1} if info.get("turn_index") else {})
            left_out.update({"output": 1} if row.get("output") else {})
            left_out.update({"request_args": 1} if row.get("request_args") else {})
            yield row, status


class _Row:
    """One request; its stamps are Unix time in seconds."""

    def __init__(self, row: Mapping[str, Any], status: RequestStatus, *, scheduled: bool) -> None:
        self._row, self._status = row, status
        self._info = _table(row, "info")
        self._timings = _table(self._info, "timings")
        self.sent = time_in(self._timings.get("request_start"), "request_start", most=_LATEST)
        target = self._timings.get("targeted_start")
        plausible = isinstance(target, int | float) and 0 <= self.sent - target <= MAX_SECONDS
        self.has_due = scheduled and plausible
        self.due = float(target) if self.has_due and target is not None else self.sent

    def request(self, number: int, origin: float) -> RequestRecord:
        """Return the request as servetop records it, with seconds since `origin`."""
        first, last, end = (
            self._instant(name) for name in ("first_token_iteration", "last_token_iteration", "request_end")
        )
        ok = self._status is RequestStatus.OK
        if ok and (end is None or end < (first or self.sent)):
            raise UsageError("request_end of a successful request is absent or before its first token")
        end = self._instant("resolve_end") if end is None else end
        tokens = self._tokens("output")
        received = tokens if ok else count_in(self._timings.get("token_iterations") or 0, "token_iterations")
        chunks, error = np.empty(0), self._error()
        if first is not None and received:
            chunks = even_chunks(first - origin, (first if last is None else last) - origin, received)
        return RequestRecord(
            id=number,
            stage=0,
            due=self.due - origin,
            sent=self.sent - origin,
            first_token_at=float(chunks[0]) if chunks.size else None,
            done_at=None if end is None else end - origin,
            prompt_tokens=self._tokens("input"),
            output_tokens=tokens if ok else chunks.size,
            cached_tokens=self._cached(),
            status=self._status,
            error=None if ok else error,
            http_status=int(code[1]) if not ok and (code := _HTTP_STATUS.search(error)) else None,
            chunk_times=chunks,
            chunk_tokens=np.broadcast_to(np.int64(1), chunks.shape),
        )

    def _instant(self, name: str) -> float | None:
        value = self._timings.get(name)
        return None if value is None else time_in(value, name, most=_LATEST)

    def _tokens(self, side: str) -> int:
        """Return the tokens of the prompt (`input`) or of the output."""
        known = self._row.get("prompt_tokens" if side == "input" else "output_tokens")
        if known is None:
            known = _table(self._row, f"{side}_metrics").get("text_tokens")
        return 0 if known is None else count_in(known, f"{side} tokens")

    def _cached(self) -> int | None:
        value = _table(self._row, "input_metrics").get("cached_tokens")
        return None if value is None else count_in(value, "cached_tokens")

    def _error(self) -> str:
        text = " ".join(_text(self._info.get("error")).split())
        if found := _HTTP_STATUS.search(text):
            return f"HTTP {found[1]}{found[2]}"
        if text:
            return text.partition("\\n")[0]
        cancelled = self._status is RequestStatus.CANCELLED
        return "cancelled at the end of the benchmark" if cancelled else "failed, without a reason in the file"


def _load(strategy: Mapping[str, Any]) -> ImportedLoad:
    rate, name = strategy.get("rate"), strategy.get("type_")
    limit = 1 if name == "synchronous" else strategy.get("streams") or strategy.get("max_concurrency")
    return ImportedLoad(
        request_rate=positive_number(rate, "rate") if name in ("constant", "poisson") else math.inf,
        max_concurrency=limit if isinstance(limit, int) and limit > 0 else None,
    )


def _without_due(rows: list[_Row], strategy: str) -> Iterator[str]:
    """Yield a remark if the file does not say when requests of a schedule were due."""
    unknown = sum(not each.has_due for each in rows)
    if unknown and strategy in _SCHEDULED:
        yield f"targeted_start of {counted(unknown, 'request')} is not a Unix time: each counts as due when it was sent"


def _sampled(benchmark: Mapping[str, Any], requests: list[RequestRecord]) -> Iterator[str]:
    """Yield a remark if the file has a sample of the requests."""
    totals = _table(_table(benchmark, "metrics"), "request_totals")
    total = totals.get("successful")
    ok = sum(each.status is RequestStatus.OK for each in requests)
    if isinstance(total, int) and total > ok:
        yield f"the file has {counted(ok, 'request')} of {total:,} that succeeded: rates are too low by that factor"


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
