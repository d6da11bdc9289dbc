"""A result of `vllm bench serve`: its keys and units, lists that give its statistics, failures and hostile text."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.core.config import RunConfig
from servetop.core.events import RequestRecord, RequestStatus, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.export.stage_rows import exported_stages
from servetop.reports.export.vllm_result import vllm_result
from tests.recordings.rows import stage

MakeRequest = Callable[..., RequestRecord]
ResultOf = Callable[..., dict[str, Any]]
LISTS = (
    "input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "generated_texts",
    "errors",
)  # fmt: skip
KEYS = [
    "date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate",
    "burstiness", "max_concurrency", "duration", "completed", "failed", "total_input_tokens", "total_output_tokens",
    "request_throughput", "request_goodput", "output_throughput", "total_token_throughput", *LISTS,
    "max_output_tokens_per_s", "max_concurrent_requests", "rtfx",
]  # fmt: skip
"""The keys of vLLM 0.32 in its order, before the statistics (vllm/benchmarks/serve.py)."""


def results_of(path: Path, only: int | None = None) -> list[dict[str, Any]]:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        stages = exported_stages(reader, only)
        return [json.loads("".join(vllm_result(reader, each))) for each in stages]


@pytest.fixture(scope="module")
def sample() -> list[dict[str, Any]]:
    return results_of(resolve("sample"))


@pytest.fixture
def result_of(tmp_path: Path, header: RunHeader) -> ResultOf:
    """The result of a recording with these requests in one stage."""

    def result(requests: Sequence[RequestRecord], *, config: RunConfig | None = None, **fields: Any) -> dict[str, Any]:
        known = dataclasses.replace(header, config=config or header.config)
        recorder = Recorder.create(tmp_path / "run.servetop", known)
        recorder.commit(TickTransaction(requests=requests, stages=[stage(0, 0.0, **fields)]))
        recorder.close(RunEnd(at=20.0, exit_code=0, reason=""))
        (found,) = results_of(recorder.path)
        return found

    return result


def test_there_is_a_result_for_each_stage_with_the_keys_of_vllm(sample: list[dict[str, Any]]) -> None:
    assert [each["request_rate"] for each in sample] == [4.0, 16.0, 16.0, 4.0]
    for each in sample:
        assert list(each)[: len(KEYS)] == KEYS
        assert {len(each[name]) for name in LISTS} == {each["num_prompts"]}
    assert sum(each["num_prompts"] for each in sample) == 803


@pytest.mark.parametrize("metric", ["ttft", "tpot", "itl", "e2el"])
def test_the_statistics_are_those_of_the_summary_and_of_the_lists(sample: list[dict[str, Any]], metric: str) -> None:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        stages = exported_stages(reader, None)
    for result, each in zip(sample, stages, strict=True):
        latency = each.stage.measured.requests.latencies[metric]
        for name, expected in latency.items().items():
            assert result[f"{name}_{metric}_ms"] == pytest.approx(expected, rel=1e-6)
        lists = {
            "ttft": result["ttfts"],
            "e2el": result["latencies"],
            "itl": [gap for gaps in result["itls"] for gap in gaps],
            "tpot": [
                (latency - ttft) / (tokens - 1)
                for latency, ttft, tokens in zip(
                    result["latencies"], result["ttfts"], result["output_lens"], strict=True
                )
            ],
        }
        assert result[f"p99_{metric}_ms"] == pytest.approx(np.percentile(lists[metric], 99) * 1e3, rel=1e-12)


def test_requests_are_in_order_of_due_and_times_are_seconds(result_of: ResultOf, make_request: MakeRequest) -> None:
    result = result_of(
        [
            make_request(1, 2.0, tokens_at=[0.2, 0.3], slip=0.5, prompt_tokens=7, output_text="late"),
            make_request(0, 1.0, tokens_at=[0.1, 0.2, 0.4]),
        ]
    )
    assert result["input_lens"] == [10, 7]
    assert result["output_lens"] == [3, 2]
    assert result["ttfts"] == pytest.approx([0.1, 0.2])
    assert result["itls"] == [[0.1, 0.2], [0.1]]
    assert result["latencies"] == pytest.approx([0.4, 0.3])
    assert result["queue_times"] == pytest.approx([0.0, 0.5])
    assert result["start_times"] == pytest.approx([1.000001, 2.500001])  # origin_ns is 1,000
    assert result["generated_texts"] == ["", "late"]
    assert result["errors"] == ["", ""]


def test_what_did_not_succeed_is_failed_and_has_an_error(result_of: ResultOf, make_request: MakeRequest) -> None:
    result = result_of(
        [
            make_request(0, 0.0),
            make_request(1, 1.0, status=RequestStatus.ERROR, error="HTTP 500: broken", tokens_at=[]),
            make_request(2, 2.0, status=RequestStatus.CANCELLED),
            make_request(3, 3.0, status=RequestStatus.TIMEOUT, tokens_at=[], sent=None, headers_at=None),
        ]
    )
    assert (result["num_prompts"], result["completed"], result["failed"]) == (4, 1, 3)
    assert result["errors"] == ["", "HTTP 500: broken", "cancelled", "timeout"]
    assert result["output_lens"] == [2, 0, 0, 0]
    assert (result["ttfts"][1], result["itls"][1], result["latencies"][3]) == (0.0, [], 0.0)
    assert result["mean_ttft_ms"] == pytest.approx(100.0)


def test_a_closed_loop_is_inf_with_its_limit(result_of: ResultOf, make_request: MakeRequest) -> None:
    result = result_of([make_request(0, 0.0, slip=0.25)], rate=float("inf"), max_concurrency=8)
    assert (result["request_rate"], result["max_concurrency"]) == ("inf", 8)
    assert result["mean_client_queue_time_ms"] == pytest.approx(250.0)


def test_metadata_cannot_replace_a_figure_and_text_stays_text(result_of: ResultOf, make_request: MakeRequest) -> None:
    attack = '"},\x1b]0;x\x07\u202e\n##[stop-commands]'
    config = RunConfig(metadata={"completed": "999", "note": attack}, label=attack)
    result = result_of([make_request(0, 0.0, output_text=attack)], config=config)
    assert (result["completed"], result["note"], result["label"]) == (1, attack, attack)
    assert result["generated_texts"] == [attack]
