"""The engine page's tables against real pages of the engines."""

from __future__ import annotations

import gzip
import itertools
import re
from pathlib import Path

import pytest

from servetop.analysis.exported.metric_values import ExportedValue, metric_values, periods_between
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.engines.engine_registry import engine_names
from servetop.engines.metrics.exported_tables import EXPORTED_BY
from servetop.engines.metrics.series_collector import SeriesCollector, SeriesPacker
from servetop.engines.metrics.vllm_exported import VLLM_EXPORTED

DATA = Path(__file__).parent / "data"


def values_of(engine: str, *pages: bytes, seconds: float = 1.0) -> dict[str, ExportedValue]:
    """The values between the first and the last of some scrapes, by name and label."""
    collector, packer, history = SeriesCollector(EXPORTED_BY[engine]), SeriesPacker(), ScrapeHistory()
    for number, page in enumerate(pages):
        collector.collect({"/metrics": page}, at=number * seconds)
        reading = collector.take()
        assert reading is not None
        history.extend([packer.pack(reading)])
    found = metric_values(EXPORTED_BY[engine], periods_between(history, [0, len(pages) - 1]))
    return {f"{each.spec.name} {each.label}".strip(): each for each in found}


def grown(page: str, name: str, by: float) -> str:
    """The page with one series higher by some amount."""
    pattern = re.compile(rf"^({re.escape(name)}(?:\{{[^\n]*\}})?) (\S+)$", re.MULTILINE)
    return pattern.sub(lambda match: f"{match[1]} {float(match[2]) + by}", page, count=1)


def test_a_real_vllm_page_two_seconds_later_gives_rates_ratios_and_means() -> None:
    before = after = (DATA / "vllm" / "metrics_0.32.0.txt").read_text()
    for name, by in {
        "vllm:prefix_cache_queries_total": 400.0, "vllm:prefix_cache_hits_total": 100.0,
        "vllm:estimated_flops_per_gpu_total": 6e12, "vllm:iteration_tokens_total_count": 50.0,
        "vllm:iteration_tokens_total_sum": 600.0, "vllm:request_num_preemptions_count": 4.0,
        "vllm:request_num_preemptions_sum": 6.0,
    }.items():  # fmt: skip
        after = grown(after, name, by)
    values = values_of("vllm", before.encode(), after.encode(), seconds=2.0)
    assert values["tokens found"].values[0] == 0.25
    assert values["model FLOP/s per GPU"].values[0] == 3e12
    assert values["iterations"].values[0] == 25.0
    assert values["tokens/iteration, mean"].values[0] == 12.0
    assert values["preemptions per request"].values[0] == 1.5
    assert values["waiting: capacity"].values[0] == 14.0
    assert values["waiting: capacity"].source == "vllm:num_requests_waiting_by_reason"
    assert "running, rank 0" not in values  # one rank
    assert "draft tokens accepted" not in values  # without speculative decoding


def test_the_ranks_of_a_data_parallel_vllm_are_listed() -> None:
    page = (DATA / "vllm" / "metrics_data_parallel.txt").read_bytes()
    values = values_of("vllm", page, page)
    assert [values[f"running, rank {rank}"].values[0] for rank in (0, 1)] == [30.0, 34.0]
    assert [values[f"KV usage, rank {rank}"].values[0] for rank in (0, 1)] == [0.5, 1.0]


def test_speculative_decoding_has_the_acceptance_and_length_of_vllms_log() -> None:
    names = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
    idle = "".join(f'vllm:spec_decode_{name}_total{{engine="0"}} 0\n' for name in names)
    busy = "".join(
        f'vllm:spec_decode_{name}_total{{engine="0"}} {value}\n'
        for name, value in zip(names, (10, 30, 15), strict=True)
    )
    position = 'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="%d"} %d\n'
    idle += "".join(position % (number, 0) for number in range(3))
    busy += "".join(position % pair for pair in enumerate((8, 5, 2)))
    values = values_of("vllm", idle.encode(), busy.encode())
    assert values["draft tokens accepted"].values[0] == 0.5
    assert values["tokens per step"].values[0] == 2.5  # 1 + 15 / 10
    assert [values[f"accepted at position {number}"].values[0] for number in range(3)] == [0.8, 0.5, 0.2]


@pytest.mark.parametrize(
    ("engine", "page", "name", "value"),
    [
        ("vllm", "vllm/metrics_0.8.5_v1.txt", "tokens found", None),
        ("llama.cpp", "llama.cpp/metrics_loaded.txt", "busy slots, mean", 3.86649),
        ("ray-serve-llm", "ray-serve-llm/metrics_loaded.txt.gz", "waiting: capacity", 16.0),
        ("triton-tensorrt-llm", "triton/metrics_loaded.txt", "requests: scheduled", 7.0),
        ("triton-tensorrt-llm", "triton/metrics_loaded.txt", "batcher: generation_requests", 7.0),
    ],
)
def test_pages_of_other_versions_and_engines_are_read(engine: str, page: str, name: str, value: float | None) -> None:
    body = (DATA / page).read_bytes()
    body = gzip.decompress(body) if page.endswith(".gz") else body
    found = values_of(engine, body, body)[name]
    assert value is None or found.values[0] == value


def test_every_series_of_vllm_0_26_is_on_the_page_or_on_a_panel() -> None:
    lines = (DATA / "vllm" / "families_0.26.0.txt").read_text().splitlines()
    families = {line.split()[0].removesuffix("_total") for line in lines if line.startswith("vllm:")}
    shown = {name.removesuffix("_total") for spec in VLLM_EXPORTED for name in (*spec.series, *spec.of)}
    assert families - shown == {"vllm:cache_config_info"}  # a fact of the engine, in the KV panel


def test_each_table_belongs_to_an_engine_and_its_names_are_unique() -> None:
    assert set(EXPORTED_BY) <= set(engine_names())
    for specs in EXPORTED_BY.values():
        names = [(spec.group, spec.name) for spec in specs]
        assert len(names) == len(set(names))
        groups = [spec.group for spec in specs]
        assert len(set(groups)) == 1 + sum(one != two for one, two in itertools.pairwise(groups))
