"""What the engine itself said over a period: peaks, preemptions and token counts; None where it does not say."""

from __future__ import annotations

from typing import Any

import numpy as np

from servetop.analysis.engine_gauges import kv_usages
from servetop.core.arrays import FloatArray
from servetop.recordings.read.run_columns import Period, RunColumns
from servetop.recordings.summary.in_flight_timeline import InFlightTimeline

SERVER = (
    "max_kv_usage", "preemptions", "max_running", "max_waiting", "generation_tokens", "prompt_tokens",
    "prefix_cache_hits", "prefix_cache_queries", "prefix_cache_hit_rate",
)  # fmt: skip


_PEAKS = ("max_kv_usage", "max_running", "max_waiting")


def server_figures(run: RunColumns, period: Period, *, flights: InFlightTimeline) -> dict[str, Any]:
    """SERVER, and `peaks_reason`: why figures are None although the engine exports them.

    Counters are sums of their increases, so the stages of a run add up to the run, restarts or not. Of a period whose
    requests were in flight between two scrapes the peaks are unknown, and so are the counters where no scrape followed.
    """
    within = period.holds(run.scraped_at)
    engine = {name: values[within] for name, values in run.engine.items()}
    usage = kv_usages(engine["kv_usage"], engine["kv_blocks_used"], engine["kv_blocks_total"])
    hits, queries = (_sum(engine[f"prefix_cache_{name}_total"]) for name in ("hits", "queries"))
    figures = {
        "max_kv_usage": _largest(usage),
        "preemptions": _sum(engine["preemptions_total"]),
        "max_running": _largest(engine["running"]),
        "max_waiting": _largest(engine["waiting"]),
        "generation_tokens": _sum(engine["generation_tokens_total"]),
        "prompt_tokens": _sum(engine["prompt_tokens_total"]),
        "prefix_cache_hits": hits,
        "prefix_cache_queries": queries,
        "prefix_cache_hit_rate": hits / queries if hits is not None and queries else None,
    }
    starts, ends = run.scrape_starts[within], run.scrape_ends[within]
    busy, in_flight = flights.busy(run, period), np.minimum(*(flights.in_flight(run, each) for each in (starts, ends)))
    if busy is None or not _is_told(run) or (in_flight > 0).any():
        return {**figures, "peaks_reason": None}
    unknown = _PEAKS if (starts > busy.start).any() else SERVER
    reason = f"no metrics page of the engine came while requests were in flight, for {busy.until - busy.start:.3g} s"
    return {**figures, **dict.fromkeys(unknown), "peaks_reason": reason}


def engine_facts(run: RunColumns) -> dict[str, Any]:
    """Name, version and sizes: from what the engine told at its start, else from its newest scrape."""
    facts, config = run.header.engine, run.header.config.engine
    return {
        "name": config.name if facts is None else facts.name,
        "version": None if facts is None else facts.version,
        "kv_blocks_total": (facts and facts.kv_blocks_total) or _newest(run.engine["kv_blocks_total"]),
        "max_num_seqs": (facts and facts.max_num_seqs) or _newest(run.engine["max_num_seqs"]) or config.max_num_seqs,
    }


def _is_told(run: RunColumns) -> bool:
    """The engine exports one of these figures at least."""
    return any(bool((~np.isnan(values)).any()) for values in run.engine.values())


def _largest(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else None


def _sum(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.sum()) if known.size else None


def _newest(values: FloatArray) -> int | None:
    known = values[~np.isnan(values)]
    return int(known[-1]) if known.size else None
