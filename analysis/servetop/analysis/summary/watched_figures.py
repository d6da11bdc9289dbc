"""What a watched server counted, and the limits that it ran into."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from servetop.analysis.columns.run_columns import RunColumns
from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.overload import Limit, Overload, limit_of, overloads
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.summary.watch_types import WatchedFigures, WatchedLimit
from servetop.core.arrays import FloatArray
from servetop.core.text import formats
from servetop.core.tick import TICK_SECONDS
from servetop.core.units import MS_PER_S

REQUESTS_WAIT = "requests wait"
"""The name of a queue that neither full KV blocks nor a full batch explain."""

FAILING = Bottleneck.FAILING.value
"""The name of episodes in which the server fails requests."""
_JUDGED = ("running", "waiting", "kv_usage", "kv_blocks_used", "preemptions", "engine_failed")
"""Gauges and counters by which limits are judged."""
_TOTALS = (
    "requests_finished_total",
    "generation_tokens_total",
    "prompt_tokens_total",
    "requests_ended_total",
    "requests_failed_total",
)


def watched_figures(record: RunRecord, run: RunColumns) -> WatchedFigures | None:
    """Return the figures from the first metrics page to the end; None if no page was read."""
    scraped = record.history.column("scrape_end")
    known = np.flatnonzero(~np.isnan(scraped))
    if not known.size or not run.scrape_ends.size:
        return None
    first = int(known[0])
    seconds = (scraped.size - first) * TICK_SECONDS
    requests, output, prompt, ended, failed = (_total(run.engine[name]) for name in _TOTALS)
    return WatchedFigures(
        seconds=seconds,
        seconds_without_metrics=float(np.isnan(scraped[first:]).sum()) * TICK_SECONDS,
        requests=requests,
        request_throughput=_rate(requests, seconds),
        output_throughput=_rate(output, seconds),
        prompt_throughput=_rate(prompt, seconds),
        requests_ended=ended,
        requests_failed=failed,
        error_rate=failed / ended if failed is not None and ended else None,
        mean_ttft_ms=_mean(run, "first_token_seconds_total", "first_tokens_total"),
        mean_tpot_ms=_mean(run, "tpot_seconds_total", "tpot_requests_total"),
        mean_e2el_ms=_mean(run, "e2el_seconds_total", "e2el_requests_total"),
        mean_queue_ms=_mean(run, "queue_seconds_total", "queued_requests_total"),
        limits=tuple(_limits(record)),
        judged=any(not np.isnan(record.history.column(name)).all() for name in _JUDGED),
    )


def watch_headline(figures: WatchedFigures | None) -> str:
    """Return what limited the server in one sentence, such as `KV-bound for 1:12 of 5:00`."""
    if figures is None:
        return "no metrics were read"
    whole = formats.clock(figures.seconds)
    if not figures.judged:
        answered = formats.clock(figures.seconds - figures.seconds_without_metrics)
        return f"answered for {answered} of {whole}: without metrics that servetop knows limits are not judged"
    parts = [f"{each.name} for {formats.clock(each.seconds)}" for each in figures.limits]
    if figures.seconds_without_metrics:
        parts.append(f"without metrics for {formats.clock(figures.seconds_without_metrics)}")
    if not parts:
        return f"watched for {whole}: no limit was reached"
    return f"{', '.join(parts)} of {whole}"


def named_overloads(record: RunRecord) -> Iterator[tuple[str, Overload]]:
    """Yield the name of the limit behind each overload, and the overload, in order of time; failed requests too."""
    found = [(FAILING, Overload(episodes=(each,))) for each in record.of_kind(EpisodeKind.FAILING)]
    for group in overloads(record.episodes):
        limit = limit_of(group, record.history, record.header.engine, until=record.until)
        found.append((limit.value if limit in (Limit.KV, Limit.BATCH) else REQUESTS_WAIT, group))
    yield from sorted(found, key=lambda each: each[1].begin)


def _limits(record: RunRecord) -> Iterator[WatchedLimit]:
    by_name: dict[str, list[Overload]] = {}
    for name, group in named_overloads(record):
        by_name.setdefault(name, []).append(group)
    for name, groups in by_name.items():
        yield WatchedLimit(name=name, seconds=_seconds(groups, record.until), onset=groups[0].begin)


def _seconds(groups: Sequence[Overload], until: float) -> float:
    return sum(min(each.seen_until, until) - each.begin for each in groups)


def _total(increases: FloatArray) -> float | None:
    known = increases[~np.isnan(increases)]
    return float(known.sum()) if known.size else None


def _rate(total: float | None, seconds: float) -> float | None:
    return None if total is None or not seconds else total / seconds


def _mean(run: RunColumns, seconds: str, count: str) -> float | None:
    total, of = _total(run.engine[seconds]), _total(run.engine[count])
    mean = total / of if total is not None and of else math.nan
    return None if math.isnan(mean) else mean * MS_PER_S
