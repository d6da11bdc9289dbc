"""The Benchmark Report of llm-d; its own schema validates one in tests/integration/test_export_peers.py."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.llmd_report import llmd_report
from servetop.reports.export.stage_rows import ExportedStage, exported_stages


@pytest.fixture(scope="module")
def sample() -> Iterator[RecordingReader]:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        yield reader


@pytest.fixture(scope="module")
def stages(sample: RecordingReader) -> list[tuple[ExportedStage, dict[str, Any]]]:
    return [(each, json.loads("".join(llmd_report(sample, each)))) for each in exported_stages(sample, None)]


def test_the_figures_are_those_of_the_summary_of_the_stage(stages: list[tuple[ExportedStage, dict[str, Any]]]) -> None:
    for stage, report in stages:
        measured = stage.stage.measured.requests
        found = report["results"]["request_performance"]["aggregate"]
        assert found["requests"]["total"] == measured.num_prompts
        assert found["requests"]["failures"] == measured.failed
        for metric, name in (
            ("ttft", "time_to_first_token"),
            ("itl", "inter_token_latency"),
            ("e2el", "request_latency"),
        ):
            expected = measured.latencies[metric]
            assert 1000 * found["latency"][name]["mean"] == pytest.approx(expected.mean, rel=1e-12)
            assert 1000 * found["latency"][name]["p99"] == pytest.approx(expected.percentiles["p99"], rel=1e-12)
        assert found["throughput"]["request_rate"]["mean"] == measured.request_throughput
        assert found["throughput"]["output_token_rate"]["mean"] == measured.output_throughput


def test_reports_of_one_run_have_their_experiment_in_common(stages: list[tuple[ExportedStage, dict[str, Any]]]) -> None:
    runs = [report["run"] for _, report in stages]
    assert len({each["eid"] for each in runs}) == 1
    assert len({each["uid"] for each in runs}) == len(runs) == 4


def test_the_load_is_that_of_the_stage(stages: list[tuple[ExportedStage, dict[str, Any]]]) -> None:
    load = stages[0][1]["scenario"]["load"]["standardized"]
    assert (load["rate_qps"], load["source"], load["stage"]) == (4.0, "random", 0)
    assert load["input_seq_len"] == {"distribution": "fixed", "value": 128}
    assert "concurrency" not in load
    engine = stages[0][1]["scenario"]["stack"][0]["standardized"]
    assert (engine["kind"], engine["model"], engine["kv_blocks"]) == ("generic", "llama-2-7b", 500)
