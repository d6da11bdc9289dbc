"""The rows of the tables of a watch as texts, the same on the terminal and in a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from servetop.analysis.exported.exported_summary import ExportedMetric
from servetop.analysis.fleet.fleet_text import names_text
from servetop.analysis.summary.watch_types import ReplicaWatch, WatchedFigures, WatchSummary
from servetop.core.text import formats
from servetop.core.units import MS_PER_S

LATENCIES = ("TTFT", "TPOT", "ITL", "E2EL", "time in the queue")
"""Histograms of the engine in the table of latencies, by their names on the engine page."""
LATENCY_CAPTION = "Latency by the engine's own histograms, ms"
SERVER_COLUMNS = (
    *("tok/s", "req/s", "errors", "peak\nrun", "peak\nwait", "peak\nKV"),
    *("pre-\nempt.", "TTFT\np90", "version"),
)
"""Titles in lines, so that the table has room for names on 80 columns."""
SERVER_TITLES = tuple(name.replace("-\n", "").replace("\n", " ") for name in SERVER_COLUMNS)
"""The same in one line each."""
SERVER_CAPTION = "Servers (latency in ms)"

_SMALLEST = 0.001
"""The smallest error rate that has a number of its own."""
_NOT_COUNTED, _NO_REQUEST = "not counted", "no request ended"
_MOST_REMARKS = 3
"""Servers with the same remark that have a line each."""
_STATES = {"gone": "no response", "refused": "not watched", "removed": "not listed"}
"""The states at the end as they are in the table of the dashboard."""


def watch_title(summary: WatchSummary) -> str:
    """Return the engine, its version and its model."""
    engine = summary.engine
    return " ".join(str(part) for part in (engine.name, engine.version, "·", summary.model_id) if part)


def total_rows(summary: WatchSummary) -> list[tuple[str, str]]:
    """Return name and text of each figure that the server exports."""
    engine, server, watched = summary.engine, summary.server, summary.watched
    rows: list[tuple[str, str | None]] = [("Watched", None if watched is None else formats.clock(watched.seconds))]
    if watched is not None:
        silent = watched.seconds_without_metrics
        rows += [
            ("Without metrics", formats.clock(silent) if silent else None),
            ("Requests finished", _known(watched.requests, formats.exact)),
            ("Request throughput", _rate(watched.request_throughput, "req/s")),
            ("Output throughput", _rate(watched.output_throughput, "tok/s")),
            ("Prompt throughput", _rate(watched.prompt_throughput, "tok/s")),
            ("Error rate", _failed_of_all(watched, summary.replicas or ())),
        ]
    rows += [
        ("KV blocks", _known(engine.kv_blocks_total, formats.exact)),
        ("Peak KV usage", _known(server.max_kv_usage, formats.percent)),
        ("Preemptions", _known(server.preemptions, formats.exact)),
        ("Prefix cache hits", _known(server.prefix_cache_hit_rate, formats.percent)),
        ("Peak running", _known(server.max_running, formats.exact)),
        ("Peak waiting", _known(server.max_waiting, formats.exact)),
    ]
    return [(label, value) for label, value in rows if value is not None]


def server_row(each: ReplicaWatch) -> list[str]:
    """Return the name and the texts of SERVER_COLUMNS of one of several servers."""
    watched, server = each.watched, each.server
    return [
        each.name,
        formats.number(None if watched is None else watched.output_throughput),
        formats.number(None if watched is None else watched.request_throughput),
        error_rate_text(None if watched is None else watched.error_rate),
        *map(formats.exact, (server.max_running, server.max_waiting)),
        formats.percent(server.max_kv_usage),
        formats.exact(server.preemptions),
        formats.in_full(each.p90_ttft_ms),
        each.version or formats.UNKNOWN,
    ]


def error_rate_text(rate: float | None) -> str:
    """Return an error rate with one decimal; one that is not 0 never reads as 0."""
    return f"<{formats.percent(_SMALLEST)}" if rate is not None and 0 < rate < _SMALLEST else formats.percent(rate)


def error_rate_reason(watched: WatchedFigures | None) -> str | None:
    """Return why the share of failed requests is not known; None if it is."""
    if watched is None:
        return "no metrics were read"
    if watched.requests_failed is None:
        return f"{_NOT_COUNTED} by the engine, or recorded before format 1.24"
    return _NO_REQUEST if watched.error_rate is None else None


def _failed_of_all(watched: WatchedFigures, replicas: Sequence[ReplicaWatch]) -> str:
    """Return the share of failed requests and both numbers, or in short why it is not known."""
    if watched.error_rate is None:
        return _NOT_COUNTED if watched.requests_failed is None else _NO_REQUEST
    failed, ended = (formats.exact(each) for each in (watched.requests_failed, watched.requests_ended))
    count = sum(each.watched is not None and each.watched.requests_failed is not None for each in replicas)
    some = f", of the {count} of {len(replicas)} servers that count them" if count < len(replicas) else ""
    return f"{error_rate_text(watched.error_rate)} ({failed} of {ended} requests{some})"


def server_remarks(replicas: Sequence[ReplicaWatch], headline: str) -> Iterator[str]:
    """Yield what there is to add of each of several servers besides its figures and the verdict.

    Many servers with the same remark are counted.
    """
    by_remark: dict[str, list[ReplicaWatch]] = {}
    for each in replicas:
        if remarks := "; ".join(_remarks(each, headline)):
            by_remark.setdefault(remarks.replace(each.url, "") if each.url else remarks, []).append(each)
    for alike in by_remark.values():
        remarks = "; ".join(_remarks(alike[0], headline))
        if len(alike) <= _MOST_REMARKS:
            yield from (f"{each.name}: {'; '.join(_remarks(each, headline))}" for each in alike)
        else:
            yield f"{len(alike)} servers ({names_text([each.name for each in alike])}): {remarks}"


def _remarks(each: ReplicaWatch, headline: str) -> Iterator[str]:
    in_verdict = each.reason is not None and f"{each.name}: {without_advice(each.reason)}" in headline
    never_read = each.watched is None and in_verdict
    if each.state not in ("attached", "restarted") and not never_read:
        yield _STATES.get(each.state, each.state)
    if each.restarts:
        yield f"{each.restarts} × restarted"
    if each.reason and not never_read:
        yield each.reason
    if each.differs:
        yield f"differs: {each.differs}"


def without_advice(reason: str) -> str:
    """Return why a server does not respond, without what to do about it."""
    return reason.partition(": ")[0]


def latency_rows(summary: WatchSummary) -> list[list[str]]:
    """Return name, mean, p50 and p90 of each latency that the engine exports, in milliseconds.

    A quantile in the first bucket of its histogram is only known to be at most the bound of that bucket: `≤300`. Of
    quantiles in the same bucket only its bounds are known: `500–1,000`.
    """
    watched = summary.watched
    if watched is None:
        return []
    exported = {each.name: each for each in summary.engine_metrics or ()}
    itl = mean_ms(exported.get("ITL"))
    means = (watched.mean_ttft_ms, watched.mean_tpot_ms, itl, watched.mean_e2el_ms, watched.mean_queue_ms)
    rows = [
        [name, formats.in_full(mean), *_quantile_texts(exported.get(name))]
        for name, mean in zip(LATENCIES, means, strict=True)
    ]
    return [row for row in rows if any(text != formats.UNKNOWN for text in row[1:])]


def mean_ms(metric: ExportedMetric | None) -> float | None:
    """Return the mean of a histogram of seconds in milliseconds; None if it is not known."""
    return None if metric is None or metric.mean is None else metric.mean * MS_PER_S


def _quantile_texts(metric: ExportedMetric | None) -> list[str]:
    """Return p50 and p90 of a histogram of seconds, in milliseconds."""
    if metric is None:
        return [formats.UNKNOWN, formats.UNKNOWN]
    return [_quantile_text(value, metric) for value in (metric.value, metric.p90)]


def _quantile_text(seconds: float | None, metric: ExportedMetric) -> str:
    if seconds is None:
        return formats.UNKNOWN
    bucket = metric.bucket(seconds)
    return formats.in_full(seconds * MS_PER_S) if bucket is None else bucket_text(milliseconds(bucket))


def milliseconds(bucket: tuple[float, float | None]) -> tuple[float, float | None]:
    """Return the bounds of a bucket in milliseconds, from seconds."""
    low, high = bucket
    return low * MS_PER_S, None if high is None else high * MS_PER_S


def bucket_text(bucket: tuple[float, float | None]) -> str:
    """Return the bounds of a bucket: `≤300` for the first one, `500–1,000`, or `>10,000` for the last one."""
    low, high = bucket
    if high is None:
        return f">{formats.in_full(low)}"
    return f"{formats.in_full(low)}–{formats.in_full(high)}" if low else f"≤{formats.in_full(high)}"


def _known(value: float | None, text: Callable[[float], str]) -> str | None:
    return None if value is None else text(value)


def _rate(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{formats.number(value)} {unit}"
