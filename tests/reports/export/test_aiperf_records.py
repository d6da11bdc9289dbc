"""AIPerf's artifacts: tags and units of its schema, the summary's figures, stamps in ns, failures and hostile text."""

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
from servetop.reports.export.aiperf_records import aiperf_records, aiperf_summary
from servetop.reports.export.stage_rows import exported_stages
from tests.recordings.rows import stage

MakeRequest = Callable[..., RequestRecord]
Artifacts = tuple[list[dict[str, Any]], dict[str, Any]]
ArtifactsOf = Callable[..., Artifacts]
REQUIRED = {"session_num", "request_start_ns", "request_end_ns", "worker_id", "record_processor_id", "benchmark_phase"}
"""What AIPerf 0.13 requires of a record's metadata (common/models/record_models.py)."""
STATISTICS = ["unit", "avg", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "min", "max", "std"]
EPOCH_NS = 1_700_000_000_000_000_000


def artifacts(reader: RecordingReader, number: int) -> Artifacts:
    (chosen,) = exported_stages(reader, number)
    records = [json.loads(each) for each in "".join(aiperf_records(reader, chosen)).splitlines()]
    return records, json.loads("".join(aiperf_summary(reader, chosen)))


@pytest.fixture
def artifacts_of(tmp_path: Path, header: RunHeader) -> ArtifactsOf:
    """The artifacts of a recording with these requests in one stage."""

    def found(requests: Sequence[RequestRecord], *, config: RunConfig | None = None) -> Artifacts:
        known = dataclasses.replace(header, config=config or header.config)
        recorder = Recorder.create(tmp_path / "run.servetop", known)
        recorder.commit(TickTransaction(requests=requests, stages=[stage(0, 0.0)]))
        recorder.close(RunEnd(at=20.0, exit_code=0, reason=""))
        with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
            return artifacts(reader, 0)

    return found


def test_statistics_are_those_of_the_records_and_of_the_summary() -> None:
    tags = {"time_to_first_token": "ttft", "inter_token_latency": "tpot", "request_latency": "e2el"}
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        (chosen,) = exported_stages(reader, 1)
        records, summary = artifacts(reader, 1)
    for tag, metric in tags.items():
        values = [each["metrics"][tag]["value"] for each in records]
        assert list(summary[tag])[: len(STATISTICS)] == STATISTICS
        assert summary[tag]["unit"] == records[0]["metrics"][tag]["unit"] == "ms"
        for q in (50, 90, 95, 99):
            assert summary[tag][f"p{q}"] == pytest.approx(np.percentile(values, q), rel=1e-12)
            expected = chosen.stage.measured.requests.latency(metric, f"p{q}")
            assert summary[tag][f"p{q}"] == pytest.approx(expected, rel=1e-9)
    assert summary["request_count"] == {"unit": "requests", "avg": 390}
    assert summary["schema_version"] == "1.4"
    assert all(set(each["metadata"]) >= REQUIRED for each in records)


def test_a_record_has_stamps_lengths_and_gaps(artifacts_of: ArtifactsOf, make_request: MakeRequest) -> None:
    (record,), summary = artifacts_of(
        [make_request(7, 2.0, tokens_at=[0.2, 0.3, 0.5], slip=0.5, reasoning_tokens=1, first_output_at=2.8)]
    )
    stamps = {name: record["metadata"][name] - EPOCH_NS for name in ("credit_issued_ns", "request_start_ns")}
    assert stamps == {"credit_issued_ns": 2_000_000_000, "request_start_ns": 2_500_000_000}
    assert record["metadata"]["request_end_ns"] - EPOCH_NS == 3_000_000_000
    metrics = {name: each["value"] for name, each in record["metrics"].items()}
    assert metrics == {
        "request_latency": pytest.approx(500.0), "time_to_first_token": pytest.approx(200.0),
        "time_to_second_token": pytest.approx(100.0), "time_to_first_output_token": pytest.approx(300.0),
        "inter_token_latency": pytest.approx(150.0), "inter_chunk_latency": pytest.approx([100.0, 200.0]),
        "input_sequence_length": 10, "output_sequence_length": 3, "output_token_count": 2, "reasoning_token_count": 1,
        "output_token_throughput_per_user": pytest.approx(1000 / 150),
    }  # fmt: skip
    assert summary["start_time"] == "2023-11-14T22:13:22.500000+00:00"
    assert summary["total_osl"] == {"unit": "tokens", "avg": 3}


def test_failures_are_errors_and_have_no_latency(artifacts_of: ArtifactsOf, make_request: MakeRequest) -> None:
    broken = {"status": RequestStatus.ERROR, "error": "HTTP 500: broken", "http_status": 500, "tokens_at": []}
    records, summary = artifacts_of(
        [
            make_request(0, 0.0),
            make_request(1, 1.0, **broken),
            make_request(2, 2.0, **broken),
            make_request(3, 3.0, status=RequestStatus.CANCELLED),
        ]
    )
    assert [each.get("error", {}).get("code") for each in records] == [None, 500, 500, 499]
    assert [each["metadata"]["was_cancelled"] for each in records] == [False, False, False, True]
    assert records[1]["metrics"] == {"error_isl": {"value": 10, "unit": "tokens"}}
    assert [each["count"] for each in summary["error_summary"]] == [2, 1]
    assert (summary["request_count"]["avg"], summary["error_request_count"]["avg"]) == (1, 3)


def test_hostile_text_stays_one_value(artifacts_of: ArtifactsOf, make_request: MakeRequest) -> None:
    attack = '"}}\x1b]0;x\x07\u202e##[stop-commands]'
    (record,), _ = artifacts_of([make_request(0, 0.0, status=RequestStatus.ERROR, error=attack, tokens_at=[])])
    assert record["error"]["message"] == attack
