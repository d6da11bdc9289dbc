"""The metrics of the engine page by engine; a new series is one more line of its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from servetop.analysis.exported.metric_spec import MetricSpec, Unit, specs_from
from servetop.core.config import to_data
from servetop.engines.metrics.spec_builders import gauge_of, mean_of, quantiles_of, rate_of, ratio_of
from servetop.engines.metrics.vllm_exported import VLLM_EXPORTED

if TYPE_CHECKING:
    from servetop.core.interfaces.run_source import EngineFacts
    from servetop.engines.engine import Engine

_PREFIX, _QUEUE, _LATENCY, _LENGTHS = "Prefix cache", "Queue and scheduler", "Engine latencies", "Request sizes"
_SPECULATIVE, _SPEED, _OFFLOAD = "Speculative decoding", "Speed", "KV offload"
_RPS = Unit.REQUESTS_PER_SECOND

_SGLANG = (
    ratio_of(_PREFIX, "prompt tokens found", "sglang:cached_tokens", "sglang:prompt_tokens"),
    gauge_of(_PREFIX, "found, engine's figure", "sglang:cache_hit_rate", unit=Unit.SHARE),
    quantiles_of(_QUEUE, "time in the queue", "sglang:queue_time_seconds"),
    gauge_of(_QUEUE, "retracted requests", "sglang:num_retracted_reqs", unit=Unit.REQUESTS),
    gauge_of(_QUEUE, "paused requests", "sglang:num_paused_reqs", unit=Unit.REQUESTS),
    gauge_of(_QUEUE, "waiting for a grammar", "sglang:num_grammar_queue_reqs", unit=Unit.REQUESTS),
    rate_of(_QUEUE, "aborted requests", "sglang:num_aborted_requests", unit=_RPS),
    gauge_of(_QUEUE, "free KV tokens", "sglang:kv_available_tokens", unit=Unit.TOKENS),
    quantiles_of(_LATENCY, "TTFT", "sglang:time_to_first_token_seconds"),
    quantiles_of(_LATENCY, "ITL", "sglang:inter_token_latency_seconds"),
    quantiles_of(_LATENCY, "E2EL", "sglang:e2e_request_latency_seconds"),
    gauge_of(_SPECULATIVE, "tokens per step", "sglang:spec_accept_length", unit=Unit.TOKENS),
    gauge_of(_SPECULATIVE, "draft tokens accepted", "sglang:spec_accept_rate", unit=Unit.SHARE),
    gauge_of(_SPEED, "output, engine's figure", "sglang:gen_throughput", unit=Unit.TOKENS_PER_SECOND),
)

_TGI = (
    quantiles_of(_QUEUE, "time in the queue", "tgi_request_queue_duration"),
    quantiles_of(_QUEUE, "time in validation", "tgi_request_validation_duration"),
    mean_of(_QUEUE, "next batch, mean", "tgi_batch_next_size", unit=Unit.REQUESTS),
    rate_of(_QUEUE, "batches:", "tgi_batch_inference_count", by="method", unit=Unit.PER_SECOND),
    rate_of(_QUEUE, "finished requests", "tgi_request_success", unit=_RPS),
    rate_of(_QUEUE, "failed requests:", "tgi_request_failure", by="err", unit=_RPS),
    quantiles_of(_LATENCY, "E2EL", "tgi_request_duration"),
    quantiles_of(_LATENCY, "prefill and decode", "tgi_request_inference_duration"),
    quantiles_of(_LATENCY, "per token", "tgi_request_mean_time_per_token_duration"),
    mean_of(_LATENCY, "forward pass, mean", "tgi_batch_forward_duration", unit=Unit.SECONDS),
    quantiles_of(_LENGTHS, "prompt", "tgi_request_input_length", unit=Unit.TOKENS),
    quantiles_of(_LENGTHS, "output", "tgi_request_generated_tokens", unit=Unit.TOKENS),
    quantiles_of(_LENGTHS, "output limit", "tgi_request_max_new_tokens", unit=Unit.TOKENS),
    mean_of(_SPECULATIVE, "drafted tokens, mean", "tgi_request_skipped_tokens"),
)

_LLAMA_CPP = (
    ratio_of(_PREFIX, "cached / computed", "llamacpp:prompt_tokens_cached", "llamacpp:prompt_tokens"),
    rate_of(_QUEUE, "calls of decode", "llamacpp:n_decode", unit=Unit.PER_SECOND),
    gauge_of(_QUEUE, "busy slots, mean", "llamacpp:n_busy_slots_per_decode"),
    gauge_of(_QUEUE, "longest sequence so far", "llamacpp:n_tokens_max", unit=Unit.TOKENS),
    rate_of(_SPEED, "time in prefill", "llamacpp:prompt_seconds", unit=Unit.SHARE),
    rate_of(_SPEED, "slots decoding", "llamacpp:tokens_predicted_seconds"),
    gauge_of(_SPEED, "prefill, engine's figure", "llamacpp:prompt_tokens_seconds", unit=Unit.TOKENS_PER_SECOND),
    gauge_of(_SPEED, "decode, engine's figure", "llamacpp:predicted_tokens_seconds", unit=Unit.TOKENS_PER_SECOND),
    ratio_of(
        _SPECULATIVE,
        "draft tokens accepted",
        "llamacpp:spec_decode_num_accepted_tokens",
        "llamacpp:spec_decode_num_draft_tokens",
    ),
    replace(
        ratio_of(
            _SPECULATIVE,
            "tokens per step",
            "llamacpp:spec_decode_num_accepted_tokens",
            "llamacpp:spec_decode_num_drafts",
            unit=Unit.TOKENS,
        ),
        plus=1.0,
    ),
)

_TENSORRT_LLM = (
    ratio_of(_PREFIX, "prompt tokens found", "trtllm_prompt_cached_tokens", "trtllm_prompt_tokens"),
    gauge_of(_PREFIX, "blocks reused", "trtllm_kv_cache_hit_rate", unit=Unit.SHARE),
    quantiles_of(_QUEUE, "time in the queue", "trtllm_request_queue_time_seconds"),
    gauge_of(_QUEUE, "in prefill", "trtllm_num_context_requests", unit=Unit.REQUESTS),
    gauge_of(_QUEUE, "in decode", "trtllm_num_generation_requests", unit=Unit.REQUESTS),
    gauge_of(_QUEUE, "paused", "trtllm_num_paused_requests", unit=Unit.REQUESTS),
    gauge_of(_QUEUE, "time of an iteration", "trtllm_iteration_latency_seconds", unit=Unit.SECONDS),
    rate_of(_QUEUE, "finished:", "trtllm_request_success", by="finished_reason", unit=_RPS),
    rate_of(_QUEUE, "failed requests:", "trtllm_request_error", by="http_code", unit=_RPS),
    quantiles_of(_LATENCY, "TTFT", "trtllm_time_to_first_token_seconds"),
    quantiles_of(_LATENCY, "TPOT", "trtllm_time_per_output_token_seconds"),
    quantiles_of(_LATENCY, "E2EL", "trtllm_e2e_request_latency_seconds"),
    quantiles_of(_LATENCY, "prefill", "trtllm_request_prefill_time_seconds"),
    quantiles_of(_LATENCY, "decode", "trtllm_request_decode_time_seconds"),
    ratio_of(
        _SPECULATIVE,
        "draft tokens accepted",
        "trtllm_spec_decode_num_accepted_tokens",
        "trtllm_spec_decode_num_draft_tokens",
    ),
    gauge_of(_SPECULATIVE, "tokens per step", "trtllm_spec_decode_acceptance_length", unit=Unit.TOKENS),
    rate_of(_OFFLOAD, "loaded", "trtllm_kv_cache_onboard_bytes", unit=Unit.BYTES_PER_SECOND),
    rate_of(_OFFLOAD, "stored", "trtllm_kv_cache_offload_bytes", unit=Unit.BYTES_PER_SECOND),
)

_TRITON = (
    gauge_of(_QUEUE, "requests:", "nv_trt_llm_request_metrics", by="request_type", unit=Unit.REQUESTS),
    gauge_of(_QUEUE, "batcher:", "nv_trt_llm_inflight_batcher_metrics", by="inflight_batcher_specific_metric"),
    gauge_of(_QUEUE, "KV blocks:", "nv_trt_llm_kv_cache_block_metrics", by="kv_cache_block_type"),
    gauge_of(_QUEUE, "pending in Triton", "nv_inference_pending_request_count", unit=Unit.REQUESTS),
    rate_of(_QUEUE, "finished requests", "nv_inference_request_success", unit=_RPS),
    rate_of(_QUEUE, "failed requests:", "nv_inference_request_failure", by="reason", unit=_RPS),
    rate_of(_QUEUE, "executions of:", "nv_inference_exec_count", by="model", unit=Unit.PER_SECOND),
    gauge_of("Process", "CPU in use", "nv_cpu_utilization", unit=Unit.SHARE),
    gauge_of("Process", "memory of the machine", "nv_cpu_memory_used_bytes", unit=Unit.BYTES),
    gauge_of("Process", "pinned memory", "nv_pinned_memory_pool_used_bytes", unit=Unit.BYTES),
)


def _as_exported_by_ray(spec: MetricSpec) -> MetricSpec:
    series, of = (tuple(name.replace("vllm:", "ray_vllm_") for name in names) for names in (spec.series, spec.of))
    return replace(spec, series=series, of=of)


EXPORTED_BY: Mapping[str, tuple[MetricSpec, ...]] = {
    "llama.cpp": _LLAMA_CPP,
    "ray-serve-llm": tuple(_as_exported_by_ray(spec) for spec in VLLM_EXPORTED if spec.series[0].startswith("vllm:")),
    "sglang": _SGLANG,
    "sim": VLLM_EXPORTED,
    "tensorrt-llm": _TENSORRT_LLM,
    "tgi": _TGI,
    "triton-tensorrt-llm": _TRITON,
    "vllm": VLLM_EXPORTED,
}
"""Tables by the name of the engine's adapter; an engine without Prometheus metrics has none, a plug-in its own."""


def exported_by(engine: Engine) -> tuple[MetricSpec, ...]:
    """Return the metrics of an engine's page; empty for one without a table."""
    return EXPORTED_BY.get(engine.name, tuple(engine.exported))


def recorded_table(engine: Engine) -> tuple[Mapping[str, Any], ...]:
    """Return the metrics of an engine's page as data for the recording."""
    return tuple(to_data(spec) for spec in exported_by(engine))


def exported_metrics(facts: EngineFacts) -> tuple[MetricSpec, ...]:
    """Return the metrics of the page of a recorded engine, which need not be installed; empty without a table."""
    return specs_from(facts.exported) or EXPORTED_BY.get(facts.name, ())
