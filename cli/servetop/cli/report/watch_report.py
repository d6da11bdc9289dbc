"""The summary of a watch on the terminal or as JSON: the server's own figures, and nothing of a client."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from rich.console import Group

from servetop.analysis.exported.exported_summary import ExportedMetric
from servetop.analysis.summary.summary_json import plain_object
from servetop.analysis.summary.watch_types import ReplicaWatch, WatchedFigures, WatchSummary
from servetop.cli.report.run_tables import exported_table, telling_metrics
from servetop.cli.tables import out_tables
from servetop.core.errors import UsageError
from servetop.core.text import formats
from servetop.core.units import MS_PER_S
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.watch_summary import watch_summary
from servetop.reports.tables import cell, light_table, titled
from servetop.run import console

LATENCIES = ("TTFT", "TPOT", "ITL", "E2EL", "time in the queue")
"""Histograms of the engine in the table of latencies, by their names on the engine page."""


def refuse_client_figures(percentiles: Sequence[float] | None, prices: Sequence[str]) -> None:
    """Raise UsageError for an option of `summary` about requests, of which a watch has none."""
    for option, values in (("--metric-percentiles", percentiles), ("--price", prices)):
        if values:
            raise UsageError(f"{option}: a watch has no requests of its own: leave it out")


def print_watch(reader: RecordingReader, *, as_json: bool, kept: bool = True) -> None:
    """Print the summary of a recorded watch, which names the recording only if it is `kept`."""
    summary = watch_summary(reader)
    summary = summary if kept else dataclasses.replace(summary, recording=None)
    if as_json:
        console.out_json(plain_object(summary))
        return
    out_tables(*_tables(summary))
    console.out(f"verdict    {summary.headline}")
    for limit in summary.watched.limits if summary.watched is not None else ():
        console.out(f"{formats.clock(limit.onset):>9}  {limit.name}, for {formats.clock(limit.seconds)} in all")
    for line in _remarks(summary):
        console.out(line)
    console.out(f"recording  {summary.recording or 'none kept (--no-record)'}")
    if reader.damage is not None:
        console.message(reader.damage)


def _remarks(summary: WatchSummary) -> Iterator[str]:
    """Yield what there is to say of each of several servers besides its figures."""
    for each in summary.replicas or ():
        restarts = f"{each.restarts} × restarted" if each.restarts else ""
        state = "" if each.state in ("attached", "restarted") else each.state
        differs = f"differs: {each.differs}" if each.differs else ""
        if remarks := [part for part in (state, restarts, each.reason, differs) if part]:
            yield f"{each.name}: {'; '.join(remarks)}"


def _tables(summary: WatchSummary) -> Iterator[Group]:
    """Yield the tables that have contents."""
    yield _totals(summary)
    if summary.replicas is not None:
        yield _replicas(summary.replicas)
    metrics = summary.engine_metrics or ()
    if summary.watched is not None and (rows := _latency_rows(summary.watched, metrics)):
        table = light_table("", "mean", "p50", "p90")
        for name, values in rows:
            table.add_row(name, *map(formats.in_full, values))
        yield titled("Latency by the engine's own histograms, ms", table)
    telling = [each for each in telling_metrics(metrics) if each.name not in LATENCIES]
    if telling:
        yield exported_table(telling)


def _totals(summary: WatchSummary) -> Group:
    """Return the figures that the server exports, in one column; a figure that it does not export has no row."""
    engine, server, watched = summary.engine, summary.server, summary.watched
    heading = " ".join(str(part) for part in ("watch ·", engine.name, engine.version, "·", summary.model_id) if part)
    table = light_table("", "")
    table.show_header = False
    rows: list[tuple[str, str | None]] = [("Watched", None if watched is None else formats.clock(watched.seconds))]
    if watched is not None:
        silent = watched.seconds_without_metrics
        rows += [
            ("Without metrics", formats.clock(silent) if silent else None),
            ("Requests finished", _known(watched.requests, formats.exact)),
            ("Request throughput", _rate(watched.request_throughput, "req/s")),
            ("Output throughput", _rate(watched.output_throughput, "tok/s")),
            ("Prompt throughput", _rate(watched.prompt_throughput, "tok/s")),
        ]
    rows += [
        ("KV blocks", _known(engine.kv_blocks_total, formats.exact)),
        ("Peak KV usage", _known(server.max_kv_usage, formats.percent)),
        ("Preemptions", _known(server.preemptions, formats.exact)),
        ("Prefix cache hits", _known(server.prefix_cache_hit_rate, formats.percent)),
        ("Peak running", _known(server.max_running, formats.exact)),
        ("Peak waiting", _known(server.max_waiting, formats.exact)),
    ]
    for label, value in rows:
        if value is not None:
            table.add_row(label, value)
    return titled(heading, table)


def _replicas(replicas: Sequence[ReplicaWatch]) -> Group:
    """Return one row for each of several servers."""
    table = light_table("", "tok/s", "req/s", "peak\nrun", "peak\nwait", "peak\nKV", "preempt.", "TTFT\np90", "version")
    for each in replicas:
        watched, server = each.watched, each.server
        table.add_row(
            cell(each.name),
            formats.number(None if watched is None else watched.output_throughput),
            formats.number(None if watched is None else watched.request_throughput),
            *map(formats.exact, (server.max_running, server.max_waiting)),
            formats.percent(server.max_kv_usage),
            formats.exact(server.preemptions),
            formats.in_full(each.p90_ttft_ms),
            cell(each.version or formats.UNKNOWN),
        )
    return titled("Servers (latency in ms)", table)


def _latency_rows(
    watched: WatchedFigures, metrics: Sequence[ExportedMetric]
) -> list[tuple[str, tuple[float | None, float | None, float | None]]]:
    """Return mean, p50 and p90 in milliseconds of each latency that the engine exports."""
    means = dict(zip(LATENCIES, (watched.mean_ttft_ms, watched.mean_tpot_ms, None, watched.mean_e2el_ms,
                                 watched.mean_queue_ms), strict=True))  # fmt: skip
    quantiles = {each.name: (_ms(each.value), _ms(each.p90)) for each in metrics if each.name in LATENCIES}
    rows = [(name, (means[name], *quantiles.get(name, (None, None)))) for name in LATENCIES]
    return [(name, values) for name, values in rows if any(value is not None for value in values)]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * MS_PER_S


def _known(value: float | None, text: Callable[[float], str]) -> str | None:
    return None if value is None else text(value)


def _rate(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{formats.number(value)} {unit}"
