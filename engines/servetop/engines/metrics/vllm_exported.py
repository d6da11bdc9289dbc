"""The engine page of vLLM: series of its `/metrics` that are not fields of EngineSample (names of 0.6 to 0.32)."""

from __future__ import annotations

from dataclasses import replace

from servetop.analysis.exported.metric_spec import MetricSpec, Unit
from servetop.engines.metrics.lora_requests import ADAPTER, MOST, RUNNING, WAITING
from servetop.engines.metrics.spec_builders import (
    gauge_of,
    imbalance_of,
    mean_of,
    older,
    per_gpu,
    quantiles_of,
    rate_of,
    ratio_of,
)

_V = "vllm:"
_PREFIX, _QUEUE, _LATENCY, _LENGTHS = "Prefix cache", "Queue and scheduler", "Engine latencies", "Request sizes"
_SPECULATIVE, _BLOCKS, _OFFLOAD = "Speculative decoding", "KV block lifetimes", "KV offload"
_TRANSFER, _COMPUTE, _RANKS, _PROCESS = (
    "KV transfer (NIXL)",
    "Compute, estimated",
    "Data-parallel ranks",
    "API server process",
)
_LORA = "LoRA adapters"
_ACCEPTED, _DRAFTS = f"{_V}spec_decode_num_accepted_tokens", f"{_V}spec_decode_num_drafts"
_TPS, _RPS, _BPS = Unit.TOKENS_PER_SECOND, Unit.REQUESTS_PER_SECOND, Unit.BYTES_PER_SECOND

VLLM_EXPORTED: tuple[MetricSpec, ...] = (
    older(
        ratio_of(_PREFIX, "tokens found", f"{_V}prefix_cache_hits", f"{_V}prefix_cache_queries"),
        f"{_V}prefix",
        f"{_V}gpu_prefix",
    ),
    ratio_of(
        _PREFIX, "tokens found externally", f"{_V}external_prefix_cache_hits", f"{_V}external_prefix_cache_queries"
    ),
    ratio_of(_PREFIX, "multimodal items found", f"{_V}mm_cache_hits", f"{_V}mm_cache_queries"),
    ratio_of(_PREFIX, "prompt tokens cached", f"{_V}prompt_tokens_cached", f"{_V}prompt_tokens"),
    rate_of(_PREFIX, "prompt tokens:", f"{_V}prompt_tokens_by_source", by="source", unit=_TPS),
    rate_of(_PREFIX, "cached tokens:", f"{_V}prompt_tokens_cached_by_source", by="source", unit=_TPS),
    gauge_of(_QUEUE, "waiting:", f"{_V}num_requests_waiting_by_reason", by="reason", unit=Unit.REQUESTS),
    gauge_of(_QUEUE, "KV fetches:", f"{_V}num_requests_kv_fetch_by_stage", by="stage", unit=Unit.REQUESTS),
    quantiles_of(_QUEUE, "time in the queue", f"{_V}request_queue_time_seconds"),
    mean_of(_QUEUE, "preemptions per request", f"{_V}request_num_preemptions", unit=Unit.NUMBER),
    rate_of(_QUEUE, "iterations", f"{_V}iteration_tokens_total_count", unit=Unit.PER_SECOND),
    mean_of(_QUEUE, "tokens/iteration, mean", f"{_V}iteration_tokens_total"),
    quantiles_of(_QUEUE, "tokens/iteration", f"{_V}iteration_tokens_total", unit=Unit.TOKENS),
    rate_of(_QUEUE, "finished:", f"{_V}request_success", by="finished_reason", unit=_RPS),
    rate_of(_QUEUE, "HTTP answers:", "http_requests", by="status", unit=_RPS),
    rate_of(_QUEUE, "rejected:", f"{_V}admission_rejections", by="reason", unit=_RPS),
    rate_of(_QUEUE, "corrupted requests", f"{_V}corrupted_requests", unit=_RPS),
    gauge_of(_LORA, "runs:", RUNNING, by=ADAPTER),
    gauge_of(_LORA, "waits:", WAITING, by=ADAPTER),
    gauge_of(_LORA, "adapters in a batch, at most", MOST),
    quantiles_of(_LATENCY, "TTFT", f"{_V}time_to_first_token_seconds"),
    quantiles_of(_LATENCY, "ITL", f"{_V}inter_token_latency_seconds"),
    quantiles_of(_LATENCY, "TPOT", f"{_V}request_time_per_output_token_seconds", f"{_V}time_per_output_token_seconds"),
    quantiles_of(_LATENCY, "E2EL", f"{_V}e2e_request_latency_seconds"),
    quantiles_of(_LATENCY, "prefill", f"{_V}request_prefill_time_seconds"),
    quantiles_of(_LATENCY, "decode", f"{_V}request_decode_time_seconds"),
    quantiles_of(_LATENCY, "prefill and decode", f"{_V}request_inference_time_seconds"),
    quantiles_of(_LENGTHS, "prompt", f"{_V}request_prompt_tokens", unit=Unit.TOKENS),
    quantiles_of(_LENGTHS, "prompt, not cached", f"{_V}request_prefill_kv_computed_tokens", unit=Unit.TOKENS),
    quantiles_of(_LENGTHS, "output", f"{_V}request_generation_tokens", unit=Unit.TOKENS),
    quantiles_of(_LENGTHS, "output, longest of n", f"{_V}request_max_num_generation_tokens", unit=Unit.TOKENS),
    quantiles_of(_LENGTHS, "output limit", f"{_V}request_params_max_tokens", unit=Unit.TOKENS),
    mean_of(_LENGTHS, "completions (n)", f"{_V}request_params_n", unit=Unit.NUMBER),
    ratio_of(_SPECULATIVE, "draft tokens accepted", _ACCEPTED, f"{_V}spec_decode_num_draft_tokens"),
    replace(ratio_of(_SPECULATIVE, "tokens per step", _ACCEPTED, _DRAFTS, unit=Unit.TOKENS), plus=1.0),
    ratio_of(_SPECULATIVE, "accepted at position", f"{_ACCEPTED}_per_pos", _DRAFTS, by="position"),
    rate_of(_SPECULATIVE, "drafts", _DRAFTS, unit=Unit.PER_SECOND),
    quantiles_of(_BLOCKS, "lifetime", f"{_V}kv_block_lifetime_seconds"),
    quantiles_of(_BLOCKS, "idle before eviction", f"{_V}kv_block_idle_before_evict_seconds"),
    quantiles_of(_BLOCKS, "time between uses", f"{_V}kv_block_reuse_gap_seconds"),
    rate_of(_OFFLOAD, "loaded", f"{_V}kv_offload_load_bytes", unit=_BPS),
    ratio_of(_OFFLOAD, "bandwidth while loading", f"{_V}kv_offload_load_bytes", f"{_V}kv_offload_load_time", unit=_BPS),
    rate_of(_OFFLOAD, "stored", f"{_V}kv_offload_store_bytes", unit=_BPS),
    ratio_of(
        _OFFLOAD, "bandwidth while storing", f"{_V}kv_offload_store_bytes", f"{_V}kv_offload_store_time", unit=_BPS
    ),
    rate_of(_OFFLOAD, "moved:", f"{_V}kv_offload_total_bytes", by="transfer_type", unit=_BPS),
    gauge_of(_OFFLOAD, "CPU cache in use", f"{_V}kv_offload_cpu_cache_usage_perc", unit=Unit.SHARE),
    rate_of(_OFFLOAD, "stores skipped", f"{_V}kv_offload_stores_skipped", unit=Unit.PER_SECOND),
    rate_of(_OFFLOAD, "failed allocations", f"{_V}kv_offload_allocation_failure", unit=Unit.PER_SECOND),
    quantiles_of(_OFFLOAD, "lookup, synchronous", f"{_V}kv_offload_lookup_sync_delay_seconds"),
    quantiles_of(_OFFLOAD, "lookup, asynchronous", f"{_V}kv_offload_lookup_async_delay_seconds"),
    rate_of(_TRANSFER, "moved", f"{_V}nixl_bytes_transferred_sum", unit=_BPS),
    mean_of(_TRANSFER, "size of a transfer, mean", f"{_V}nixl_bytes_transferred", unit=Unit.BYTES),
    quantiles_of(_TRANSFER, "time of a transfer", f"{_V}nixl_xfer_time_seconds"),
    quantiles_of(_TRANSFER, "time to post it", f"{_V}nixl_post_time_seconds"),
    mean_of(_TRANSFER, "descriptors, mean", f"{_V}nixl_num_descriptors", unit=Unit.NUMBER),
    rate_of(_TRANSFER, "failed transfers", f"{_V}nixl_num_failed_transfers", unit=Unit.PER_SECOND),
    rate_of(_TRANSFER, "failed notifications", f"{_V}nixl_num_failed_notifications", unit=Unit.PER_SECOND),
    rate_of(_TRANSFER, "requests with expired KV", f"{_V}nixl_num_kv_expired_reqs", unit=_RPS),
    per_gpu(rate_of(_COMPUTE, "model FLOP/s per GPU", f"{_V}estimated_flops_per_gpu", unit=Unit.FLOPS), "MFU"),
    per_gpu(rate_of(_COMPUTE, "memory reads per GPU", f"{_V}estimated_read_bytes_per_gpu", unit=_BPS), "MBU"),
    per_gpu(rate_of(_COMPUTE, "memory writes per GPU", f"{_V}estimated_write_bytes_per_gpu", unit=_BPS), "MBU"),
    gauge_of(_RANKS, "running, rank", f"{_V}num_requests_running", by="engine", unit=Unit.REQUESTS),
    gauge_of(_RANKS, "waiting, rank", f"{_V}num_requests_waiting", by="engine", unit=Unit.REQUESTS),
    gauge_of(
        _RANKS, "KV usage, rank", f"{_V}kv_cache_usage_perc", f"{_V}gpu_cache_usage_perc", by="engine", unit=Unit.SHARE
    ),
    rate_of(_RANKS, "preemptions, rank", f"{_V}num_preemptions", by="engine", unit=Unit.PER_SECOND),
    rate_of(_RANKS, "output tokens, rank", f"{_V}generation_tokens", by="engine", unit=_TPS),
    imbalance_of(_RANKS, "busiest rank / mean", f"{_V}generation_tokens"),
    gauge_of(_PROCESS, "sleep state:", f"{_V}engine_sleep_state", by="sleep_state"),
    rate_of(_PROCESS, "HTTP responses:", "http_requests", by="status", unit=_RPS),
    rate_of(_PROCESS, "CPU cores", "process_cpu_seconds"),
    gauge_of(_PROCESS, "memory", "process_resident_memory_bytes", unit=Unit.BYTES),
    gauge_of(_PROCESS, "open files", "process_open_fds"),
)
"""In the order in which they are shown; a new series is one more line."""
