"""Which panels of the dashboard an engine's metrics can fill."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.core.events import EngineSample
from servetop.engines.handle import EngineHandle
from servetop.run.server_check.server_report import MetricsCheck, PanelMetrics

PANELS: Mapping[str, tuple[str, ...]] = {
    "queue": ("running", "waiting"),
    "batch limit": ("max_num_seqs",),
    "KV cache": ("kv_usage", "kv_blocks_used", "kv_blocks_total"),
    "preemptions": ("preemptions_total",),
    "prefix cache": ("prefix_cache_hits_total", "prefix_cache_queries_total"),
    "throughput": ("prompt_tokens_total", "generation_tokens_total", "requests_finished_total"),
    "TTFT by phase": ("queue_seconds_total", "prefill_seconds_total"),
    "engine latency": ("first_token_seconds_total", "tpot_seconds_total", "e2el_seconds_total"),
}
"""The fields of EngineSample that each panel draws."""


async def check_metrics(handle: EngineHandle) -> MetricsCheck:
    """Scrape the metrics once and sort them by panel."""
    sample = await handle.sample()
    trouble = handle.metrics_trouble or ""
    if sample is None:
        return MetricsCheck(
            page=handle.metrics_page,
            trouble=trouble or "none of a known engine; if they are at another address, give --metrics-url",
        )
    return MetricsCheck(page=handle.metrics_page, trouble=trouble, panels=panel_metrics(sample))


def panel_metrics(sample: EngineSample) -> tuple[PanelMetrics, ...]:
    """Sort the fields of a sample by panel and by whether they have a value."""
    return tuple(
        PanelMetrics(
            panel=panel,
            found=tuple(name for name in names if getattr(sample, name) is not None),
            missing=tuple(name for name in names if getattr(sample, name) is None),
        )
        for panel, names in PANELS.items()
    )
