"""The tables of a run as a whole: totals, failures, latencies, turns, the engine's own metrics, models, replicas."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group

from servetop.analysis.exported.exported_summary import ExportedMetric
from servetop.analysis.exported.metric_spec import Unit
from servetop.analysis.failure_reasons import Failure
from servetop.analysis.summary.summary_types import (
    EnergySummary,
    Measurements,
    ModelSummary,
    ReplicaSummary,
    RequestSummary,
    RunSummary,
    ServerSummary,
    TurnSummary,
)
from servetop.core.config import AS_IS
from servetop.core.text import formats
from servetop.reports.summary.cost_texts import cost_rows
from servetop.reports.tables import cell, light_table, titled
from servetop.tui.drawing.quantities import value_text

_USUAL = ("p50", "p90", "p95", "p99")
NEARLY_ALL = 0.99
"""Share of the time for which the energy must be known to be shown without a remark."""
_TELLING = (
    ("Prefix cache", "tokens found externally"),
    ("Speculative decoding", "draft tokens accepted"),
    ("Speculative decoding", "tokens per step"),
    ("Queue and scheduler", "time in the queue"),
    ("Queue and scheduler", "preemptions per request"),
    ("Queue and scheduler", "tokens/iteration, mean"),
    ("Queue and scheduler", "rejected"),
    ("KV offload", "loaded"),
    ("KV transfer (NIXL)", "moved"),
    ("Compute, estimated", "model FLOP/s per GPU"),
    ("Compute, estimated", "MFU"),
    ("Compute, estimated", "MBU"),
    ("Data-parallel ranks", "busiest rank / mean"),
)
"""Group and name; the other metrics are in the JSON form and on screen 7."""


def totals_table(summary: RunSummary) -> Group:
    """Return the figures of the run in one column, without a header; its title names engine, version and model."""
    engine, server, requests = summary.engine, summary.measured.server, summary.requests
    origin = "(predicted)" if summary.predicted else "(imported)" if summary.imported else ""
    heading = " ".join(
        str(part) for part in (engine.name, engine.version, "·", summary.set_up.model_id, origin) if part
    )
    table = light_table("", "")
    table.show_header = False
    ends = " / ".join(map(formats.exact, (requests.completed, requests.failed, requests.cancelled)))
    for label, value in (
        ("Requests ok / failed / cancelled", ends),
        ("Duration", formats.clock(requests.duration)),
        ("Request throughput", _number(requests.request_throughput, " req/s")),
        ("Output throughput", _number(requests.output_throughput, " tok/s")),
        ("Total token throughput", _number(requests.total_token_throughput, " tok/s")),
        (_goodput_label(summary.set_up.goodput or ()), _number(requests.request_goodput, " req/s")),
        ("KV blocks", formats.exact(engine.kv_blocks_total)),
        ("Peak KV usage", _kv_peak(summary)),
        ("Preemptions", formats.exact(server.preemptions)),
        ("Prefix cache hits", _cache_hits(server)),
        *([("Prefix cache began", summary.prefix_cache)] if summary.prefix_cache != AS_IS else []),
        ("Peak running / waiting", f"{formats.exact(server.max_running)} / {formats.exact(server.max_waiting)}"),
        *energy_rows(summary.measured.energy),
        *cost_rows(summary.measured.cost),
    ):
        table.add_row(label, value)
    return titled(heading, table)


def _kv_peak(summary: RunSummary) -> str:
    """Return the highest KV usage; of several replicas that of the fullest one, because the mean hides it."""
    peaks = [(each.server.max_kv_usage, each.replica + 1) for each in summary.replicas or ()]
    known = [(usage, number) for usage, number in peaks if usage is not None]
    if not known:
        return formats.percent(summary.measured.server.max_kv_usage)
    usage, number = max(known)
    return f"{formats.percent(usage)} (replica {number})"


def _cache_hits(server: ServerSummary) -> str:
    """Return the hit rate or its lower bound, beside the ideal one where that is known: `59.8 % (ideal 60.0 %)`."""
    ideal, bound = server.prefix_cache_ideal_hit_rate, server.prefix_cache_hit_rate_at_least
    hits = formats.percent(server.prefix_cache_hit_rate)
    if server.prefix_cache_hit_rate is None:
        if bound is None:
            return hits
        hits = f"≥ {formats.percent(bound)} by TTFT"
    return hits if ideal is None else f"{hits} (ideal {formats.percent(ideal)})"


def _goodput_label(objectives: Sequence[str]) -> str:
    """Return the name of goodput with its objectives: `Goodput, from sent (TTFT ≤ 500 ms, TPOT ≤ 50 ms)`."""
    limits = [(metric.upper(), float(limit)) for metric, _, limit in (each.partition(":") for each in objectives)]
    named = ", ".join(f"{metric} ≤ {limit:,g} ms" for metric, limit in limits)
    return f"Goodput, from sent ({named})" if named else "Goodput"


def _number(value: float | None, unit: str) -> str:
    return formats.number(value) + (unit if value is not None else "")


def energy_rows(energy: EnergySummary) -> list[tuple[str, str]]:
    """Return the names and values for the table of totals; none if no GPU reported its energy or power."""
    known = energy.known_share
    if energy.joules is None or known is None:
        return []
    gpus = "GPU" if energy.gpus == 1 else f"{energy.gpus} GPUs"
    remark = f" ({formats.percent(known)} of the time)" if known < NEARLY_ALL else ""
    each = (energy.joules_per_output_token, energy.joules_per_request)
    return [
        (f"Energy of the {gpus}", f"{formats.joules(energy.joules)}, by {energy.source}{remark}"),
        ("Energy per token / request", " / ".join(map(formats.joules, each))),
        (f"Mean power of the {gpus}", f"{formats.number(energy.mean_power)} W"),
    ]


def failures_table(failures: Sequence[Failure]) -> Group:
    """The most frequent reason first; reasons may quote a server, so they are cells of plain text."""
    table = light_table("", "requests", "first at")
    for each in failures:
        at = formats.UNKNOWN if each.first_at is None else formats.clock(each.first_at)
        table.add_row(cell(each.reason), formats.exact(each.count), at)
    return titled("Failures", table)


def latency_table(requests: RequestSummary) -> Group:
    """TTFT as served (from sent), TPOT, ITL and E2EL down, mean and percentiles across, in milliseconds."""
    columns = ("mean", *_percentiles(requests))
    table = light_table("", *columns)
    for metric, name in (("ttft", "TTFT as served"), ("tpot", "TPOT"), ("itl", "ITL"), ("e2el", "E2EL")):
        table.add_row(name, *(formats.in_full(requests.latency(metric, statistic)) for statistic in columns))
    return titled("Latency, ms", table)


def _percentiles(requests: RequestSummary) -> list[str]:
    """Return the columns of percentiles: p50, p90 and p99, or all if the run has others."""
    named = sorted(requests.latencies["ttft"].percentiles, key=lambda name: float(name.removeprefix("p")))
    return named if len(named) > len(_USUAL) else [name for name in named if name != "p95"]


def turns_table(turns: Sequence[TurnSummary]) -> Group:
    """Return one row for each turn, from 1: requests, latencies in milliseconds, mean prompt, and its cached share."""
    names = ("TTFT\nmean", "TTFT\np50", "TTFT\np99", "TPOT\nmean", "TPOT\np99", "prompt\ntokens", "cached")
    table = light_table("turn", "requests", "ok", *names)
    for turn in turns:
        ttfts, tpots = (turn.mean_ttft_ms, turn.p50_ttft_ms, turn.p99_ttft_ms), (turn.mean_tpot_ms, turn.p99_tpot_ms)
        table.add_row(
            str(turn.turn),
            formats.exact(turn.requests),
            formats.exact(turn.completed),
            *map(formats.in_full, (*ttfts, *tpots, turn.mean_prompt_tokens)),
            formats.percent(turn.cached_share),
        )
    return titled("Turns (latency in ms)", table)


def telling_metrics(metrics: Sequence[ExportedMetric]) -> list[ExportedMetric]:
    """Those of the run's metrics that the table has, if they are known and not 0."""
    return [each for each in metrics if (each.group, each.name) in _TELLING and each.value]


def exported_table(metrics: Sequence[ExportedMetric]) -> Group:
    """Return one row per metric, in the order of the engine page; a histogram has p50 / p90."""
    table = light_table("", "value (p50 / p90)", "series")
    for each in metrics:
        value = math.nan if each.value is None else each.value
        name = f"{each.name} {each.label or ''}".rstrip()
        bucket = None if each.above is None else (each.above, math.inf if each.up_to is None else each.up_to)
        text = value_text(value, Unit(each.unit), p90=each.p90, at_most=each.at_most or 0.0, bucket=bucket)
        table.add_row(cell(name), text, cell(each.series))
    return titled("The engine's own metrics", table)


def steady_table(summary: RunSummary) -> Group | None:
    """Return the main figures of the whole run and of its steady window; None without one."""
    steady = summary.steady
    if steady.start is None or steady.end is None or steady.measured is None:
        return None
    table = light_table("", "whole", "steady")
    whole, within = _figures(summary.measured), _figures(steady.measured)
    for name, value in whole.items():
        if value is not None or within[name] is not None:
            table.add_row(name, formats.in_full(value), formats.in_full(within[name]))
    energies = [each.energy.millijoules_per_token for each in (summary.measured, steady.measured)]
    if energies[1] is not None:
        table.add_row("Energy, mJ/token", *map(formats.number, energies))
    costs = [each.cost for each in (summary.measured, steady.measured)]
    if costs[1] is not None and costs[1].per_million_tokens is not None:
        table.add_row(
            f"Cost per million tokens{f', {costs[1].currency}' if costs[1].currency else ''}",
            formats.money(costs[0].per_million_tokens if costs[0] is not None else None),
            formats.money_interval(costs[1].per_million_tokens, costs[1].per_million_tokens_interval),
        )
    return titled(f"Steady state, {steady.start:.1f} s to {steady.end:.1f} s of the run", table)


def _figures(measured: Measurements) -> dict[str, float | None]:
    requests = measured.requests
    return {
        "Request throughput, req/s": requests.request_throughput,
        "Output throughput, tok/s": requests.output_throughput,
        "Total token throughput, tok/s": requests.total_token_throughput,
        "Goodput, req/s": requests.request_goodput,
        "TTFT p50, ms": requests.latency("ttft", "p50"),
        "TTFT p99, ms": requests.latency("ttft", "p99"),
        "TPOT p50, ms": requests.latency("tpot", "p50"),
        "ITL p99, ms": requests.latency("itl", "p99"),
        "E2EL p99, ms": requests.latency("e2el", "p99"),
    }


def models_table(models: Sequence[ModelSummary]) -> Group:
    """Return one row for each model of a mix: its weight, requests, throughput and latencies in milliseconds."""
    table = light_table("", "weight", "ok", "fail", "req/s", "tok/s", "TTFT\np50", "TTFT\np99", "ITL\np99")
    for model in models:
        requests = model.requests
        latencies = (requests.latency("ttft", "p50"), requests.latency("ttft", "p99"), requests.latency("itl", "p99"))
        table.add_row(
            cell(model.model),
            f"{model.weight:g}",
            formats.exact(requests.completed),
            formats.exact(requests.failed),
            *map(formats.number, (requests.request_throughput, requests.output_throughput)),
            *map(formats.in_full, latencies),
        )
    return titled("Models (latency in ms)", table)


def replicas_table(replicas: Sequence[ReplicaSummary]) -> Group:
    """Return one row for each server: its requests, unknown behind a load balancer, and the metrics it exported."""
    names = ("ok", "fail", "tok/s", "TTFT\np50", "TTFT\np99")
    table = light_table("", *names, "tokens\nout", "peak\nrun", "peak\nwait", "peak\nKV", "preempt.")
    for each in replicas:
        requests, server = each.requests, each.server
        table.add_row(
            cell(each.url.removeprefix("http://")),
            formats.exact(None if requests is None else requests.completed),
            formats.exact(None if requests is None else requests.failed),
            formats.number(None if requests is None else requests.output_throughput),
            *(formats.in_full(None if requests is None else requests.latency("ttft", q)) for q in ("p50", "p99")),
            *map(formats.exact, (server.generation_tokens, server.max_running, server.max_waiting)),
            formats.percent(server.max_kv_usage),
            formats.exact(server.preemptions),
        )
    return titled("Replicas (latency in ms)", table)
