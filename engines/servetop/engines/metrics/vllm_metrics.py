"""vLLM's metric names, newest first, from 0.2.7 to 0.32 (docs/engines/vllm.md has the table of versions)."""

from __future__ import annotations

from servetop.analysis.exported.failure_counters import HTTP_REQUESTS
from servetop.engines.metrics.metrics_reader import CacheInfo, MetricMap, counter, gauge, share
from servetop.engines.metrics.request_outcomes import request_outcomes

VLLM_FIELDS = {
    "running": gauge("vllm:num_requests_running"),
    "waiting": gauge("vllm:num_requests_waiting"),
    "kv_usage": share("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "preemptions_total": counter("vllm:num_preemptions"),
    "prompt_tokens_total": counter("vllm:prompt_tokens"),
    "generation_tokens_total": counter("vllm:generation_tokens"),
    "prefix_cache_hits_total": counter("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
    "prefix_cache_queries_total": counter("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
    "requests_finished_total": counter("vllm:request_success"),
    "first_token_seconds_total": gauge("vllm:time_to_first_token_seconds_sum"),
    "first_tokens_total": gauge("vllm:time_to_first_token_seconds_count"),
    "queue_seconds_total": gauge("vllm:request_queue_time_seconds_sum"),
    "queued_requests_total": gauge("vllm:request_queue_time_seconds_count"),
    "prefill_seconds_total": gauge("vllm:request_prefill_time_seconds_sum"),
    "prefilled_requests_total": gauge("vllm:request_prefill_time_seconds_count"),
    "tpot_seconds_total": gauge("vllm:request_time_per_output_token_seconds_sum"),
    "tpot_requests_total": gauge("vllm:request_time_per_output_token_seconds_count"),
    "e2el_seconds_total": gauge("vllm:e2e_request_latency_seconds_sum"),
    "e2el_requests_total": gauge("vllm:e2e_request_latency_seconds_count"),
}
"""EngineSample's fields by vLLM's series; both usages are ratios from 0 to 1, in spite of "perc"."""

VLLM_METRICS = MetricMap(
    fields={**VLLM_FIELDS, **request_outcomes(HTTP_REQUESTS, "vllm:request_success")},
    cache=CacheInfo(
        name="vllm:cache_config_info",
        blocks="num_gpu_blocks",
        block_size="block_size",
        reserved=1,
        reserved_unless="vllm:num_requests_swapped",  # V0 swaps and has no null block
    ),
)
