"""TensorRT-LLM's metrics: JSON iteration statistics, which are removed by reading them, and a Prometheus page.

Sources: NVIDIA/TensorRT-LLM, `serve/openai_server.py`, `_torch/pyexecutor/py_executor.py`, `metrics/collector.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from servetop.core.bounds import LARGEST_VALUE
from servetop.core.events import EngineSample
from servetop.engines.control.control_client import parsed_json
from servetop.engines.metrics.metrics_reader import (
    GAUGES,
    MetricMap,
    Pages,
    counter,
    gauge,
    share,
    with_derived_kv_usage,
)
from servetop.engines.metrics.request_outcomes import request_outcomes
from servetop.engines.server_facts import ServerFacts

ITERATIONS, PROMETHEUS = "/metrics", "/prometheus/metrics"

PROMETHEUS_MAP = MetricMap(
    fields={
        "running": gauge("trtllm_num_requests_running"),
        "waiting": gauge("trtllm_num_requests_waiting"),
        "kv_blocks_used": gauge("trtllm_kv_cache_used_blocks"),
        "kv_blocks_total": gauge("trtllm_kv_cache_max_blocks"),
        "kv_usage": share("trtllm_kv_cache_utilization"),
        "max_num_seqs": gauge("trtllm_max_batch_size_runtime"),
        "prompt_tokens_total": counter("trtllm_prompt_tokens"),
        "generation_tokens_total": counter("trtllm_generation_tokens"),
        "prefix_cache_hits_total": counter("trtllm_prompt_cached_tokens"),
        "prefix_cache_queries_total": counter("trtllm_prompt_tokens"),
        "requests_finished_total": counter("trtllm_request_success"),
        "first_token_seconds_total": gauge("trtllm_time_to_first_token_seconds_sum"),
        "first_tokens_total": gauge("trtllm_time_to_first_token_seconds_count"),
        "queue_seconds_total": gauge("trtllm_request_queue_time_seconds_sum"),
        "queued_requests_total": gauge("trtllm_request_queue_time_seconds_count"),
        "prefill_seconds_total": gauge("trtllm_request_prefill_time_seconds_sum"),
        "prefilled_requests_total": gauge("trtllm_request_prefill_time_seconds_count"),
        "tpot_seconds_total": gauge("trtllm_time_per_output_token_seconds_sum"),
        "tpot_requests_total": gauge("trtllm_time_per_output_token_seconds_count"),
        "e2el_seconds_total": gauge("trtllm_e2e_request_latency_seconds_sum"),
        "e2el_requests_total": gauge("trtllm_e2e_request_latency_seconds_count"),
        **request_outcomes("trtllm_request_error"),
    },
    path=PROMETHEUS,
)
"""1.1 and 1.2 have only the times and `request_success`, newer versions all; they are updated when a request ends."""
_ITERATION_FIELDS = (
    "running",
    "waiting",
    "kv_blocks_used",
    "kv_blocks_total",
    "kv_usage",
    "max_num_seqs",
    "preemptions_total",
    "prefix_cache_hits_total",
    "prefix_cache_queries_total",
)
"""The fields that an iteration reports."""
_EMPTY_SAMPLE = EngineSample(scrape_start=0.0, scrape_end=0.0)


class TensorRtLlmPages:
    """Reads both pages and keeps their last values, because they are empty while nothing happens.

    Pages without new values yield the previous sample with its old timestamps, so its age is visible. With `counting`,
    the server is known to report iterations and preemptions count from 0; else from the first iteration reported.
    """

    def __init__(self, *, counting: bool = False) -> None:
        self._counting = counting
        self._paused = 0
        self._iteration: Mapping[str, float | None] = {}
        self._page: EngineSample | None = None
        self._sample: EngineSample | None = None

    @property
    def paths(self) -> Sequence[str]:
        """Both paths; the second needs `return_perf_metrics`."""
        return (ITERATIONS, PROMETHEUS)

    def sample(self, pages: Pages, *, start: float, end: float) -> EngineSample | None:
        """Return None if the first page is not a list of iterations and the second is missing."""
        iterations, page = _iterations(pages), PROMETHEUS_MAP.sample(pages, start=0.0, end=0.0)
        if iterations is None and page is None:
            return None
        page_changed = page is not None and page != self._page
        if iterations:
            self._counting = True
            self._paused += sum(_paused(each) for each in iterations)
            self._iteration = _iteration_values(iterations[-1])
        elif page_changed and page is not None and page.running is not None:
            self._iteration = {}  # another reader took the iterations: the page is newer
        self._page = page or self._page
        if self._sample is None or iterations or page_changed:
            self._sample = self._merged(start, end)
        return self._sample

    def _merged(self, start: float, end: float) -> EngineSample:
        known = replace(self._page or _EMPTY_SAMPLE, scrape_start=start, scrape_end=end)
        values = {name: value for name, value in self._iteration.items() if value is not None}
        paused = float(self._paused) if self._counting else None
        return with_derived_kv_usage(replace(known, **values, preemptions_total=paused))

    def facts(self, pages: Pages) -> ServerFacts:
        """Read the newest iteration, else the Prometheus page."""
        iterations = _iterations(pages)
        if not iterations:
            return PROMETHEUS_MAP.facts(pages)
        values, size = (
            _iteration_values(iterations[-1]),
            _number(_part(iterations[-1], "kvCacheStats"), "tokensPerBlock"),
        )
        blocks, limit = values["kv_blocks_total"], values["max_num_seqs"]
        return ServerFacts(
            kv_blocks_total=None if blocks is None else int(blocks),
            block_size=None if size is None else int(size),
            max_num_seqs=None if limit is None else int(limit),
        ).merged_with(PROMETHEUS_MAP.facts(pages))

    def missing(self, pages: Pages) -> tuple[str, ...]:
        """Return the fields on neither page; without pages, those that TensorRT-LLM never exports.

        Iterations count as complete, because there are none before the first load.
        """
        exported = set(_ITERATION_FIELDS) if not pages or _iterations(pages) is not None else set()
        if not pages or PROMETHEUS in pages:
            exported |= set(PROMETHEUS_MAP.fields)
        return tuple(name for name in GAUGES if name not in exported)


def _iterations(pages: Pages) -> list[dict[str, Any]] | None:
    """Return the iterations, oldest first; None if the page is not a list."""
    found = parsed_json(pages.get(ITERATIONS, b""))
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else None


def _iteration_values(iteration: Mapping[str, Any]) -> dict[str, float | None]:
    """Convert an iteration to fields of EngineSample; prefix-cache counts are converted from blocks to tokens."""
    cache = _part(iteration, "kvCacheStats")
    reused, missed, size = (_number(cache, key) for key in ("reusedBlocks", "missedBlocks", "tokensPerBlock"))
    known = reused is not None and missed is not None and size is not None
    return {
        "running": _number(iteration, "numActiveRequests"),
        "waiting": _number(iteration, "numQueuedRequests"),
        "kv_blocks_used": _number(cache, "usedNumBlocks"),
        "kv_blocks_total": _number(cache, "maxNumBlocks"),
        "max_num_seqs": _number(iteration, "maxBatchSizeRuntime") or _number(iteration, "maxBatchSizeStatic"),
        "prefix_cache_hits_total": (reused or 0) * (size or 0) if known else None,
        "prefix_cache_queries_total": ((reused or 0) + (missed or 0)) * (size or 0) if known else None,
    }


def _paused(iteration: Mapping[str, Any]) -> int:
    """Return the preemptions: requests that this iteration paused for lack of memory, to be recomputed."""
    return int(_number(_part(iteration, "inflightBatchingStats"), "numPausedRequests") or 0)


def _part(iteration: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = iteration.get(key)
    return found if isinstance(found, dict) else {}


def _number(part: Mapping[str, Any], key: str) -> float | None:
    found = part.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= LARGEST_VALUE:
        return None
    return float(found)
