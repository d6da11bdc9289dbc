"""Every number on the metrics pages of TGI, SGLang and TensorRT-LLM, which are written from their sources."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from servetop.core.events import EngineSample
from servetop.engines.engine_registry import load_engine
from servetop.engines.metrics.metrics_reader import MetricsReader
from servetop.engines.metrics.tensorrt_llm_metrics import TensorRtLlmPages

TGI = """
# TYPE tgi_request_count counter
tgi_request_count 24
tgi_request_success 20
tgi_request_failure{err="overloaded"} 1
tgi_queue_size 3
tgi_batch_current_size 4
tgi_batch_current_max_tokens 4096
tgi_batch_max_total_tokens 16384
tgi_batch_total_tokens 0
tgi_request_input_length_sum 2400
tgi_request_generated_tokens_sum 1900
tgi_request_generated_tokens_count 20
tgi_request_queue_duration_sum 1.5
tgi_request_queue_duration_count 20
tgi_request_duration_sum 8.5
tgi_request_duration_count 20
"""
SGLANG = """
sglang:num_running_reqs{engine_type="unified",model_name="m",tp_rank="0"} 4.0
sglang:num_queue_reqs{engine_type="unified",model_name="m",tp_rank="0"} 3.0
sglang:token_usage{model_name="m"} 0.9
sglang:full_token_usage{model_name="m"} 0.25
sglang:kv_used_tokens{model_name="m"} 4096.0
sglang:num_used_tokens{model_name="m"} 5000.0
sglang:max_total_num_tokens{model_name="m"} 16384.0
sglang:num_retracted_reqs{model_name="m"} 2.0
sglang:num_retracted_requests_total{model_name="m"} 7.0
sglang:prompt_tokens_total{model_name="m"} 2400.0
sglang:generation_tokens_total{model_name="m"} 1900.0
sglang:cached_tokens_total{cache_source="device",model_name="m"} 300.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 20.0
sglang:num_requests_total{model_name="m"} 20.0
sglang:time_to_first_token_seconds_sum{model_name="m"} 2.5
sglang:time_to_first_token_seconds_count{model_name="m"} 24.0
sglang:queue_time_seconds_sum{model_name="m"} 1.5
sglang:queue_time_seconds_count{model_name="m"} 23.0
sglang:e2e_request_latency_seconds_sum{model_name="m"} 8.5
sglang:e2e_request_latency_seconds_count{model_name="m"} 20.0
"""
TRTLLM = """
trtllm_request_success_total{engine_type="undefined",finished_reason="length",model_name="undefined"} 20.0
trtllm_prompt_tokens_total{model_name="undefined"} 2400.0
trtllm_generation_tokens_total{model_name="undefined"} 1900.0
trtllm_num_requests_running{model_name="undefined"} 9.0
trtllm_num_requests_waiting{model_name="undefined"} 8.0
trtllm_kv_cache_max_blocks{model_name="undefined"} 64.0
trtllm_kv_cache_used_blocks{model_name="undefined"} 32.0
trtllm_max_batch_size_runtime{model_name="undefined"} 16.0
trtllm_time_to_first_token_seconds_sum{model_name="undefined"} 2.5
trtllm_time_to_first_token_seconds_count{model_name="undefined"} 20.0
trtllm_time_per_output_token_seconds_sum{model_name="undefined"} 0.4
trtllm_time_per_output_token_seconds_count{model_name="undefined"} 19.0
trtllm_e2e_request_latency_seconds_sum{model_name="undefined"} 8.5
trtllm_e2e_request_latency_seconds_count{model_name="undefined"} 20.0
trtllm_request_queue_time_seconds_sum{model_name="undefined"} 1.5
trtllm_request_queue_time_seconds_count{model_name="undefined"} 20.0
"""
OLD_TRTLLM = "\n".join(
    line for line in TRTLLM.split("\n") if "request_" in line and "num_" not in line and "e2e" not in line
)


def iteration(number: int, *, active: int, paused: int = 0) -> dict[str, Any]:
    cache = {"maxNumBlocks": 64, "usedNumBlocks": 48, "tokensPerBlock": 32, "reusedBlocks": 5, "missedBlocks": 15}
    batch = {"numScheduledRequests": active, "numPausedRequests": paused}
    return {
        "iter": number, "numActiveRequests": active, "numQueuedRequests": 3, "maxBatchSizeRuntime": 16,
        "maxBatchSizeStatic": 32, "kvCacheStats": cache, "inflightBatchingStats": batch,
    }  # fmt: skip


def pages(iterations: list[dict[str, Any]] | None = None, prometheus: str = "") -> dict[str, bytes]:
    found = {"/metrics": json.dumps(iterations or []).encode()}
    return {**found, "/prometheus/metrics": prometheus.encode()} if prometheus else found


def exported(sample: EngineSample | None) -> dict[str, float]:
    assert sample is not None
    return {name: value for name, value in asdict(sample).items() if value is not None and "scrape" not in name}


def reader_of(name: str) -> MetricsReader:
    reader = load_engine(name).metrics()
    assert reader is not None
    return reader


def test_tgis_page_is_read_with_its_tokens_as_blocks_of_one() -> None:
    reader = reader_of("tgi")
    assert exported(reader.sample({"/metrics": TGI.encode()}, start=1.0, end=1.5)) == {
        "running": 4, "waiting": 3, "kv_blocks_used": 4096, "kv_blocks_total": 16384, "kv_usage": 0.25,
        "prompt_tokens_total": 2400, "generation_tokens_total": 1900, "requests_finished_total": 20,
        "queue_seconds_total": 1.5, "queued_requests_total": 20, "e2el_seconds_total": 8.5, "e2el_requests_total": 20,
        "requests_ended_total": 21, "requests_failed_total": 1,
    }  # fmt: skip
    facts = reader.facts({"/metrics": TGI.encode()})
    assert (facts.kv_blocks_total, facts.block_size) == (16384, 1)


def test_a_tgi_that_was_not_used_yet_has_counters_of_0_and_gauges_that_are_not_known() -> None:
    page = {"/metrics": b"tgi_batch_max_total_tokens 16384\n"}
    values = exported(reader_of("tgi").sample(page, start=1.0, end=1.5))
    assert values["generation_tokens_total"] == 0
    assert "running" not in values
    missing = reader_of("tgi").missing(page)
    assert {"preemptions_total", "max_num_seqs", "first_tokens_total"} < set(missing)
    assert not {"running", "waiting", "kv_blocks_used"} & set(missing)


def test_sglangs_page_is_read_and_its_retracted_requests_are_preemptions() -> None:
    assert exported(reader_of("sglang").sample({"/metrics": SGLANG.encode()}, start=1.0, end=1.5)) == {
        "running": 4, "waiting": 3, "kv_blocks_used": 4096, "kv_blocks_total": 16384, "kv_usage": 0.25,
        "preemptions_total": 7, "prompt_tokens_total": 2400, "generation_tokens_total": 1900,
        "prefix_cache_hits_total": 320, "prefix_cache_queries_total": 2400, "requests_finished_total": 20,
        "first_token_seconds_total": 2.5, "first_tokens_total": 24, "queue_seconds_total": 1.5,
        "queued_requests_total": 23, "e2el_seconds_total": 8.5, "e2el_requests_total": 20,
    }  # fmt: skip


def test_tensorrt_llms_newest_iteration_is_now_and_its_paused_requests_add_up() -> None:
    reader = TensorRtLlmPages()
    first = reader.sample(pages([iteration(1, active=8, paused=2), iteration(2, active=6, paused=1)]), start=1, end=2)
    assert exported(first) == {
        "running": 6, "waiting": 3, "kv_blocks_used": 48, "kv_blocks_total": 64, "kv_usage": 0.75,
        "max_num_seqs": 16, "preemptions_total": 3, "prefix_cache_hits_total": 160, "prefix_cache_queries_total": 640,
    }  # fmt: skip
    second = reader.sample(pages([iteration(3, active=5)]), start=3, end=4)
    assert second is not None
    assert (second.running, second.preemptions_total, second.scrape_end) == (5, 3, 4)


def test_pages_that_tell_nothing_new_give_the_sample_of_before_with_its_age() -> None:
    reader = TensorRtLlmPages()
    values = reader.sample(pages([iteration(1, active=8)], TRTLLM), start=1, end=2)
    assert values is not None
    assert reader.sample(pages([], TRTLLM), start=3, end=4) is values
    moved = TRTLLM.replace("1900.0", "1950.0")
    later = reader.sample(pages([], moved), start=5, end=6)
    assert later is not None
    assert (later.generation_tokens_total, later.scrape_end) == (1950, 6)
    assert later.running == 9  # the iterations go to another reader: the page is newer


def test_both_pages_of_tensorrt_llm_are_one_sample() -> None:
    values = exported(TensorRtLlmPages().sample(pages([iteration(1, active=8)], TRTLLM), start=1, end=2))
    assert (values["running"], values["kv_blocks_used"], values["generation_tokens_total"]) == (8, 48, 1900)
    assert (values["tpot_requests_total"], values["e2el_seconds_total"]) == (19, 8.5)
    assert (values["first_tokens_total"], values["queue_seconds_total"], values["requests_finished_total"]) == (
        20,
        1.5,
        20,
    )


def test_the_fewer_names_of_tensorrt_llm_1_1_are_read_too() -> None:
    values = exported(TensorRtLlmPages().sample(pages([], OLD_TRTLLM), start=1, end=2))
    assert values == {
        "requests_finished_total": 20, "queue_seconds_total": 1.5, "queued_requests_total": 20,
        "requests_ended_total": 20, "requests_failed_total": 0,
    }  # fmt: skip


def test_preemptions_count_from_0_only_if_the_server_reports_iterations() -> None:
    for counting, preemptions in ((False, None), (True, 0)):
        sample = TensorRtLlmPages(counting=counting).sample(pages([]), start=1, end=2)
        assert sample is not None
        assert sample.preemptions_total == preemptions


def test_what_tensorrt_llm_exports_before_it_was_used_is_not_taken_for_missing() -> None:
    reader = reader_of("tensorrt-llm")
    assert not {"running", "kv_usage", "preemptions_total"} & set(reader.missing(pages([])))
    assert "generation_tokens_total" in reader.missing(pages([]))
    assert "generation_tokens_total" not in reader.missing(pages([], TRTLLM))
    facts = reader.facts(pages([iteration(1, active=8)]))
    assert (facts.kv_blocks_total, facts.block_size, facts.max_num_seqs) == (64, 32, 16)


def test_a_page_of_another_program_gives_no_sample() -> None:
    for body in (b"", b"<html>", b"{}", b"go_goroutines 8\n", b"\xff\xfe"):
        assert TensorRtLlmPages().sample({"/metrics": body}, start=0, end=1) is None
    odd = {
        "/metrics": json.dumps([7, {"numActiveRequests": -1, "kvCacheStats": 3}, {"kvCacheStats": {"x": "y"}}]).encode()
    }
    sample = TensorRtLlmPages().sample(odd, start=0, end=1)
    assert exported(sample) == {"preemptions_total": 0}


def test_deepspeed_mii_has_no_metrics() -> None:
    assert load_engine("deepspeed-mii").metrics() is None
