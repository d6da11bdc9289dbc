"""The engine's metrics over a period: peaks, preemptions and token counts; None if not exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.analysis.engine_gauges import kv_usages
from servetop.analysis.prefix_cache.ideal_hits import HitCount
from servetop.analysis.summary.in_flight_timeline import InFlightTimeline
from servetop.analysis.summary.summary_types import EngineSummary, ServerSummary
from servetop.core.arrays import BoolArray, FloatArray


def server_summary(run: RunColumns, period: Period, *, timeline: InFlightTimeline) -> ServerSummary:
    """Return the peaks and counters of a period.

    Counters are sums of increases, so the stages of a run add up to the run, even across restarts. If requests were in
    flight only between two scrapes, the peaks are unknown, and without a later scrape the counters, too. A peak is that
    of the pages that cannot describe the time before the load; a load shorter than a page may be old has none.
    """
    within = period.contains(run.scraped_at)
    engine = {name: values[within] for name, values in run.engine.items()}
    hits, queries = (_sum(engine[f"prefix_cache_{name}_total"]) for name in ("hits", "queries"))
    counters = ServerSummary(
        preemptions=_sum(engine["preemptions_total"]),
        generation_tokens=_sum(engine["generation_tokens_total"]),
        prompt_tokens=_sum(engine["prompt_tokens_total"]),
        prefix_cache_hits=hits,
        prefix_cache_queries=queries,
        prefix_cache_hit_rate=hits / queries if hits is not None and queries else None,
    )
    summary = _with_peaks(counters, engine)
    starts, ends = run.scrape_starts[within], run.scrape_ends[within]
    busy = timeline.busy(run, period)
    in_flight = np.minimum(*(timeline.in_flight(run, each) for each in (starts, ends)))
    if busy is None or not _exports_any(run):
        return summary
    if (in_flight > 0).any():
        return _with_own_peaks(summary, run, busy, within)
    seconds = busy.until - busy.start
    reason = f"the engine's metrics were not scraped while requests were in flight, for {seconds:.3g} s"
    if (starts > busy.start).any():
        return replace(counters, peaks_reason=reason)
    return ServerSummary(peaks_reason=reason)


def _with_own_peaks(summary: ServerSummary, run: RunColumns, busy: Period, within: BoolArray) -> ServerSummary:
    """Return a summary with the peaks of the pages that describe the load itself."""
    age = 0.0 if run.header.engine is None else run.header.engine.page_age
    if not age:
        return summary
    seconds, own = busy.until - busy.start, within & (run.scraped_at >= busy.start + age)
    if seconds < age or not own.any():
        reason = f"the engine's metrics page may be {age:g} s old, and the load lasted {seconds:.3g} s"
        return replace(summary, max_kv_usage=None, max_running=None, max_waiting=None, peaks_reason=reason)
    return _with_peaks(summary, {name: values[own] for name, values in run.engine.items()})


def _with_peaks(summary: ServerSummary, engine: Mapping[str, FloatArray]) -> ServerSummary:
    usage = kv_usages(engine["kv_usage"], engine["kv_blocks_used"], engine["kv_blocks_total"])
    return replace(
        summary,
        max_running=_maximum(engine["running"]),
        max_waiting=_maximum(engine["waiting"]),
        max_kv_usage=_maximum(usage),
    )


def counted_hits(server: ServerSummary) -> HitCount | None:
    """Return the tokens that the engine found in its prefix cache and looked up; None if unknown."""
    if server.prefix_cache_hits is None or server.prefix_cache_queries is None:
        return None
    return HitCount(server.prefix_cache_hits, server.prefix_cache_queries)


def hits_in_period(run: RunColumns, period: Period) -> HitCount | None:
    """Return the same for a period, from the scrapes within it."""
    within = period.contains(run.scraped_at)
    hits, queries = (_sum(run.engine[f"prefix_cache_{name}_total"][within]) for name in ("hits", "queries"))
    return None if hits is None or queries is None else HitCount(hits, queries)


def engine_summary(run: RunColumns) -> EngineSummary:
    """Return the engine's name, version and sizes: as reported at start-up, else from the newest scrape."""
    facts, config = run.header.engine, run.header.config.engine
    return EngineSummary(
        name=config.name if facts is None else facts.name,
        version=None if facts is None else facts.version,
        kv_blocks_total=(facts and facts.kv_blocks_total) or _newest(run.engine["kv_blocks_total"]),
        max_num_seqs=(facts and facts.max_num_seqs) or _newest(run.engine["max_num_seqs"]) or config.max_num_seqs,
    )


def _exports_any(run: RunColumns) -> bool:
    """Whether the engine exports at least one of these metrics."""
    return any(bool((~np.isnan(values)).any()) for values in run.engine.values())


def _maximum(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else None


def _sum(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.sum()) if known.size else None


def _newest(values: FloatArray) -> int | None:
    known = values[~np.isnan(values)]
    return int(known[-1]) if known.size else None
