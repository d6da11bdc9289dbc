"""The counters of answered and failed requests on the metrics page of a simulated server, as vLLM has them."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from servetop.core.events import EngineSample, RequestRecord, RequestStatus
from servetop.engines.engine_registry import load_engine
from servetop.engines.metrics.metrics_reader import MetricsReader
from servetop.simulator.virtual_run.virtual_run import VirtualRun

_OTHER = "vllm:num_requests_running 0\n"
"""A series by which the page is known as that of vLLM."""


class CountedAnswers:
    """The answers that a simulated server had given up to each of its pages, read by the adapter of vLLM.

    With `by_status` its HTTP server counts the answers by status, else its engine counts requests by finished reason,
    and no request that never reached it. Connections that it refused or cut off are counted by neither.
    """

    def __init__(self, run: VirtualRun, *, by_status: bool) -> None:
        kinds = [(record.done_at or 0.0, _status(record) if by_status else _reason(record)) for record in run.records]
        self._ends = sorted((at, kind) for at, kind in kinds if kind)
        self._row = (
            'http_requests_total{{handler="/v1/completions",method="POST",status="{}"}} {}\n'
            if by_status
            else 'vllm:request_success_total{{finished_reason="{}"}} {}\n'
        )
        self._kinds = ("2xx",) if by_status else ("stop", "length", "abort", "error")
        self._reader = _reader()
        self._pages: dict[int, EngineSample] = {}

    def on(self, page: EngineSample) -> EngineSample:
        """Return a page with the counters; the same object for the same page."""
        if id(page) not in self._pages:
            read = self._reader.sample({"/metrics": self._text(page.scrape_start).encode()}, start=0.0, end=0.0)
            if read is None:
                raise ValueError("the page is not that of vLLM")
            ended, failed = read.requests_ended_total, read.requests_failed_total
            self._pages[id(page)] = replace(page, requests_ended_total=ended, requests_failed_total=failed)
        return self._pages[id(page)]

    def _text(self, at: float) -> str:
        until = bisect.bisect_right(self._ends, at, key=lambda end: end[0])
        counts = Counter(dict.fromkeys(self._kinds, 0))
        counts.update(kind for _, kind in self._ends[:until])
        return _OTHER + "".join(self._row.format(kind, count) for kind, count in counts.items())


def server_failures(run: VirtualRun) -> Iterator[float]:
    """Yield the times of the answers with HTTP 5xx."""
    return (record.done_at or 0.0 for record in run.records if _status(record) == "5xx")


def _reader() -> MetricsReader:
    found = load_engine("vllm").metrics()
    if found is None:
        raise ValueError("vLLM has no metrics")
    return found


def _status(record: RequestRecord) -> str:
    """Return the class of the answer's status: that of a stream is sent before its tokens; empty without an answer."""
    error = record.error or ""
    if error.startswith("HTTP "):
        return f"{error[5]}xx"
    answered = record.status in (RequestStatus.OK, RequestStatus.CANCELLED) or record.first_token_at is not None
    return "2xx" if answered else ""


def _reason(record: RequestRecord) -> str:
    """Return why the engine finished a request; empty for one that it never got or could not count."""
    reasons = {RequestStatus.OK: "length", RequestStatus.CANCELLED: "abort"}
    return "error" if _status(record) == "5xx" else reasons.get(record.status, "")
