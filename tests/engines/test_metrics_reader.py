"""A metrics page becomes an EngineSample; values that an engine does not export stay None."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.events import EngineSample
from servetop.engines.metrics.metrics_reader import not_exported
from servetop.engines.metrics.vllm_metrics import VLLM_FIELDS, VLLM_METRICS

OF_A_CACHE = {"kv_blocks_used", "kv_blocks_total"}
OF_PREFIXES = {"prefix_cache_hits_total", "prefix_cache_queries_total"}
OF_TIMES = {
    "first_token_seconds_total", "first_tokens_total", "queue_seconds_total", "queued_requests_total",
    "prefill_seconds_total", "prefilled_requests_total", "tpot_seconds_total", "tpot_requests_total",
    "e2el_seconds_total", "e2el_requests_total",
}  # fmt: skip
OF_TOKENS = {"preemptions_total", "prompt_tokens_total", "generation_tokens_total", "requests_finished_total"}
OF_OUTCOMES = {"requests_ended_total", "requests_failed_total"}


def read(page: bytes) -> EngineSample:
    sample = VLLM_METRICS.sample({"/metrics": page}, start=1.0, end=1.5)
    assert sample is not None
    return sample


def test_a_preempting_vllm_0_32_is_read_number_for_number(vllm_data: Path) -> None:
    assert read((vllm_data / "metrics_0.32.0.txt").read_bytes()) == EngineSample(
        scrape_start=1.0,
        scrape_end=1.5,
        running=6.0,
        waiting=14.0,
        kv_blocks_used=51.0,
        kv_blocks_total=63.0,  # 64, of which one is the null block
        kv_usage=51 / 63,
        preemptions_total=517.0,
        prompt_tokens_total=2027.0,
        generation_tokens_total=45096.0,
        prefix_cache_hits_total=0.0,
        prefix_cache_queries_total=0.0,
        requests_finished_total=148.0,
        first_token_seconds_total=96.13664293289185,
        first_tokens_total=166.0,
        queue_seconds_total=78.95300197599909,
        queued_requests_total=148.0,
        prefill_seconds_total=4.641883412997231,
        prefilled_requests_total=148.0,
        tpot_seconds_total=1.9889521857577643,
        tpot_requests_total=148.0,
        e2el_seconds_total=674.5436568260193,
        e2el_requests_total=148.0,
        requests_ended_total=152.0,  # answers of its HTTP server, of which 4 have a status 4xx
        requests_failed_total=0.0,
    )


@pytest.mark.parametrize(
    ("version", "missing", "blocks"),
    [
        ("0.2.7", OF_A_CACHE | OF_PREFIXES | OF_TOKENS | OF_OUTCOMES, None),
        ("0.4.3", OF_A_CACHE | OF_PREFIXES, None),
        ("0.6.6", OF_PREFIXES, 2884),  # V0 has no null block
        ("0.8.5_v1", set(), 2884),
        ("0.10.2", set(), 2884),
    ],
)
def test_every_generation_of_metric_names_is_supported(
    vllm_data: Path, version: str, missing: set[str], blocks: int | None
) -> None:
    page = (vllm_data / f"metrics_{version}.txt").read_bytes()
    sample = read(page)
    assert set(not_exported(sample)) - OF_TIMES == missing | {"max_num_seqs"}
    assert (sample.running, sample.waiting, sample.kv_usage) == (64, 12, 0.25)
    assert sample.kv_blocks_total == VLLM_METRICS.facts({"/metrics": page}).kv_blocks_total == blocks
    assert sample.kv_blocks_used == (blocks and blocks // 4)
    if not missing & OF_TOKENS:
        assert (sample.preemptions_total, sample.prompt_tokens_total) == (17, 12800)
        assert (sample.generation_tokens_total, sample.requests_finished_total) == (40960, 100)
    if not missing & OF_PREFIXES:
        assert (sample.prefix_cache_hits_total, sample.prefix_cache_queries_total) == (100, 400)


def test_the_ranks_of_a_data_parallel_server_are_added_and_their_usage_averaged(vllm_data: Path) -> None:
    sample = read((vllm_data / "metrics_data_parallel.txt").read_bytes())
    assert (sample.running, sample.waiting, sample.preemptions_total) == (64, 12, 17)
    assert (sample.kv_usage, sample.kv_blocks_used, sample.kv_blocks_total) == (0.75, 150, 200)


def test_the_newest_name_of_every_field_is_exported_by_vllm_0_26(vllm_data: Path) -> None:
    exported = (vllm_data / "families_0.26.0.txt").read_text().split()
    newest = {name: series.names[0].removesuffix("_sum").removesuffix("_count") for name, series in VLLM_FIELDS.items()}
    assert {field for field, name in newest.items() if name not in exported} == set()


@pytest.mark.parametrize("page", [b"", b"<!doctype html><title>Grafana</title>", b"go_goroutines 8\n", b"\xff\xfe\x00"])
def test_a_page_of_another_program_gives_no_sample(page: bytes) -> None:
    assert VLLM_METRICS.sample({"/metrics": page}, start=0.0, end=0.1) is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-3", "1e999", "soon"])
def test_an_absurd_value_is_not_known(value: str) -> None:
    sample = read(f"vllm:num_requests_running 3\nvllm:num_requests_waiting {value}\n".encode())
    assert (sample.running, sample.waiting) == (3, None)


def test_a_usage_beyond_the_whole_cache_is_not_known() -> None:
    assert read(b"vllm:kv_cache_usage_perc 37.5\n").kv_usage is None


def test_a_server_that_has_not_sized_its_cache_yet_has_no_blocks() -> None:
    page = b'vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1.0\nvllm:kv_cache_usage_perc 0.5\n'
    assert (read(page).kv_blocks_total, read(page).kv_blocks_used) == (None, None)
    assert VLLM_METRICS.facts({"/metrics": page}).block_size == 16


wanted_lines = st.sampled_from(
    [*(name for series in VLLM_FIELDS.values() for name in series.names), "vllm:cache_config_info"]
)


@given(st.lists(st.tuples(wanted_lines, st.text(max_size=30)), max_size=6))
def test_garbage_after_a_known_name_never_fails(lines: list[tuple[str, str]]) -> None:
    page = "\n".join(name + rest for name, rest in lines).encode("utf-8", errors="replace")
    VLLM_METRICS.sample({"/metrics": page}, start=0.0, end=0.1)
    VLLM_METRICS.facts({"/metrics": page})
