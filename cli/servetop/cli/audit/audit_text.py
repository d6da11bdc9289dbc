"""The report of an audit as lines of text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.run.audit.audit_report import AuditedFigure, AuditReport, RequestsSeen
from servetop.run.audit.load_figures import LATENCIES, PERCENTILES, RequestError
from servetop.run.audit.request_match import MatchedBy

_TITLES: Mapping[str, str] = {
    "requests": "requests",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "duration": "duration s",
    "arrival_rate": "request rate req/s",
    "request_throughput": "throughput req/s",
    "mean_concurrency": "in flight, mean",
    "max_concurrent_requests": "in flight, peak",
    "total_input_tokens": "prompt tokens",
    "total_output_tokens": "output tokens",
    "output_throughput": "output tok/s",
    "total_token_throughput": "total tok/s",
    **{
        f"{statistic}_{name}_ms": f"{name.upper()} {statistic} ms"
        for name in LATENCIES
        for statistic in ("mean", *(f"p{q}" for q in PERCENTILES))
    },
}
_MATCHED = {
    MatchedBy.CLOCK: "matched by their times",
    MatchedBy.INTERVALS: "matched by the time between them",
    MatchedBy.ORDER: "matched by their order: the result does not say when they were sent",
    MatchedBy.NOTHING: "not matched",
}
_ERRORS = {"arrival": "arrival after sending", "ttft": "TTFT", "tpot": "TPOT", "e2el": "E2EL"}
_NONE = "–"
_MOST_OTHERS = 4
"""Kinds of requests that are listed one by one."""
_LATE_MS = 5.0
"""Delay of the simulator from which on latencies of single requests are doubtful."""


def report_lines(report: AuditReport) -> Iterator[str]:
    """Yield the lines: what ran, the requests, the figures with their errors, the errors of single requests."""
    server, client = report.server, report.client
    lag = "" if server.lag_p99_ms is None else f", own delay {server.lag_p99_ms:.1f} ms (p99)"
    batch = f"batch {server.max_num_seqs}"
    yield f"server    simulated {server.model} on {server.gpu}, {server.engine_profile}, {batch}{lag}"
    if report.result is not None and server.lag_p99_ms is not None and server.lag_p99_ms > _LATE_MS:
        yield "          the simulator was late, which counts as the client's error: use a machine with idle CPUs"
    yield f"client    {shlex.join(client.command)}"
    yield f"          {client.ending} after {formats.seconds(client.seconds)}"
    yield from _requests(report.requests)
    if (result := report.result) is not None:
        tool = " ".join(filter(None, (result.tool, result.version)))
        rows = counted(result.requests, "request")
        yield f"result    {result.file}: {tool}, {rows}, {_MATCHED[result.matched_by]}"
        yield from (f"          {each}" for each in result.remarks)
    yield ""
    yield from _figures(report.figures, compared=result is not None)
    if report.request_errors:
        yield ""
        yield from _request_errors(report.request_errors)


def _requests(requests: RequestsSeen) -> Iterator[str]:
    extra = [
        f"{count:,} {where}"
        for count, where in (
            (requests.before, "before the first of the result"),
            (requests.after, "after its last"),
        )
        if count
    ]
    yield f"requests  {', '.join([f'{requests.seen:,} seen', *extra])}"
    if requests.others:
        shown = [f"{each.method} {each.path} {each.status}: {each.count:,}" for each in requests.others[:_MOST_OTHERS]]
        left = sum(each.count for each in requests.others[_MOST_OTHERS:])
        yield f"others    {'; '.join([*shown, *([f'{left:,} more'] if left else [])])}"


def _figures(figures: Sequence[AuditedFigure], *, compared: bool) -> Iterator[str]:
    heads = ("server", "client", "error") if compared else ("server",)
    yield f"{'':<20}" + "".join(f"{each:>12}" for each in heads)
    for each in figures:
        error = _NONE if each.error_percent is None else f"{_signed(each.error_percent)} %"
        cells = [_number(each.truth), *([_number(each.client), error] if compared else [])]
        yield f"{_TITLES[each.name]:<20}" + "".join(f"{cell:>12}" for cell in cells)


def _request_errors(errors: Sequence[RequestError]) -> Iterator[str]:
    heads = ("mean", "p50", "p90", "p99")
    yield f"{'client − server, ms':<23}" + "".join(f"{each:>10}" for each in heads)
    for each in errors:
        values = (each.mean, each.p50, each.p90, each.p99)
        yield f"{_ERRORS[each.name]:<23}" + "".join(f"{_signed(value):>10}" for value in values)


def _number(value: float | None) -> str:
    if value is None:
        return _NONE
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _signed(value: float | None) -> str:
    return _NONE if value is None else f"{round(value, 2) + 0.0:+.2f}"  # not -0.00
