"""Records of AIPerf become recordings with the published statistics; old and new names of metrics are read."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.core.errors import UsageError
from servetop.core.events import RequestStatus
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from servetop.reports.export.aiperf_records import SUMMARY_FILE, aiperf_records, aiperf_summary
from servetop.reports.export.stage_rows import exported_stages
from servetop.run.imports.aiperf_export import read_aiperf_records
from servetop.run.imports.record_import import record_import
from servetop.run.imports.result_file import read_results

FOLDER = Path(__file__).parents[2] / "corpus" / "results" / "aiperf"
RECORDS = FOLDER / "profile_export.jsonl"
START = 1_700_000_000_000_000_000


def row(**changes: Any) -> dict[str, Any]:
    """A record as AIPerf 0.13 writes it: due at once, sent after 2 ms, three chunks."""
    metadata = {
        "x_request_id": "a", "turn_index": 0, "credit_issued_ns": START, "request_start_ns": START + 2_000_000,
        "request_ack_ns": START + 5_000_000, "request_end_ns": START + 402_000_000, "benchmark_phase": "profiling",
    }  # fmt: skip
    values = {
        "request_latency": (400.0, "ms"), "time_to_first_token": (0.1, "sec"),
        "inter_chunk_latency": ([100.0, 200.0], "ms"), "input_sequence_length": (7.0, "tokens"),
        "output_sequence_length": (3, "tokens"),
    }  # fmt: skip
    metrics = {name: {"value": value, "unit": unit} for name, (value, unit) in values.items()}
    found: dict[str, Any] = {"metadata": metadata, "metrics": metrics, "error": None}
    for key, value in changes.items():
        table = found if key == "error" else metrics if key in metrics or key.endswith("count") else metadata
        table[key] = value
    return found


def requests_of(*rows: dict[str, Any]) -> Any:
    return read_aiperf_records(iter(rows), Path("nowhere") / "profile_export.jsonl").requests


def test_published_percentiles_follow_from_the_rows() -> None:
    result = read_results(RECORDS)[0]
    published = json.loads((FOLDER / "profile_export_aiperf.json").read_text(encoding="utf-8"))["records"]
    served = [each for each in result.requests if each.status is RequestStatus.OK]
    values: dict[str, list[Any]] = {
        "ttft": [each.ttft for each in served],
        "request_latency": [each.e2el for each in served],
        "inter_chunk_latency": [gap for each in served for gap in np.diff(each.chunk_times)],
        "inter_token_latency": [(each.e2el - each.ttft) / (each.output_tokens - 1) for each in served],  # type: ignore[operator]
    }
    for name, found in values.items():
        known = published[name]
        assert len(found) == known["count"]
        assert np.mean(found) * 1e3 == pytest.approx(known["avg"], rel=1e-9), name
        for q in (1, 5, 25, 50, 75, 90, 95, 99):
            assert np.percentile(found, q) * 1e3 == pytest.approx(known[f"p{q}"], rel=1e-9), name
    assert sum(each.status is RequestStatus.CANCELLED for each in result.requests) == 11
    assert (result.model, result.load.max_concurrency, result.endpoint) == ("openai/gpt-oss-20b", 100, "chat")


def test_its_recording_is_sound_and_has_the_reasoning(tmp_path: Path) -> None:
    path = tmp_path / "run.servetop"
    record_import(read_results(RECORDS)[0], RECORDS, path)
    assert verify(path).verdict is VerifyVerdict.SOUND
    with contextlib.closing(RecordingReader.open(path)) as reader:
        ticks = [each.client for each in reader.poll().ticks]
        assert reader.header.imported == "AIPerf, profile_export.jsonl"
        requests = reader.requests(0.0, 100.0)
    assert (sum(each.ok for each in ticks), sum(each.cancelled for each in ticks)) == (89, 11)
    assert sum(each.reasoning_tokens or 0 for each in requests) > 0


def test_stamps_and_units_become_seconds() -> None:
    (found,) = requests_of(row())
    assert (found.due, found.sent, found.headers_at) == (0.0, 0.002, 0.005)
    assert [found.ttft, found.e2el] == pytest.approx([0.1, 0.4])
    assert found.chunk_times == pytest.approx([0.102, 0.202, 0.402])
    assert (found.prompt_tokens, found.output_tokens, found.status) == (7, 3, RequestStatus.OK)


@pytest.mark.parametrize(
    ("error", "more", "status", "code"),
    [
        ({"code": 499, "type": "RequestCancellationError", "message": ""}, {}, RequestStatus.CANCELLED, None),
        ({"code": 503, "type": "HTTPError", "message": "a\nb"}, {}, RequestStatus.ERROR, 503),
        ({"code": None, "type": "TimeoutError", "message": "late"}, {}, RequestStatus.TIMEOUT, None),
        ("broken", {"was_cancelled": True}, RequestStatus.CANCELLED, None),
    ],
)
def test_failures_keep_their_reason(error: Any, more: dict[str, Any], status: RequestStatus, code: int | None) -> None:
    (found,) = requests_of(row(error=error, **more))
    assert (found.status, found.http_status) == (status, code)
    assert found.error
    assert "\n" not in found.error


def test_the_warm_up_is_left_out_and_counted() -> None:
    result = read_aiperf_records(iter([row(benchmark_phase="warmup"), row(), row(turn_index=1)]), RECORDS)
    assert len(result.requests) == 2
    assert result.not_carried == ["requests of the warm-up (1)", "the conversation of later turns (1)"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([row(request_start_ns=-1)], "record 1: -1 is not a Unix time in nanoseconds"),
        ([row(), row(request_start_ns=1.5)], "record 2: 1.5 is not a Unix time in nanoseconds"),
        ([row(request_latency={"value": -4, "unit": "ms"})], "record 1: request_latency is -4: a time from 0 on"),
        (
            [row(request_latency={"value": float("nan"), "unit": "ms"})],
            "record 1: request_latency is nan: a time from 0 on",
        ),
        ([row(request_latency={"value": 4, "unit": "h"})], "record 1: request_latency is in h: ns, us, ms or sec"),
        ([row(output_sequence_length={"value": 1.5})], "record 1: output_sequence_length is 1.5: a number of tokens"),
        ([row(), row(request_start_ns=2 * START, credit_issued_ns=2 * START)], "the end of request 2 is "),
        ([row(benchmark_phase="warmup")], "it has no requests of the phase profiling"),
        ([], "it has no requests of the phase profiling"),
    ],
    ids=range(9),
)
def test_what_makes_no_sense_is_refused(rows: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        requests_of(*rows)
    assert reason in str(refused.value)


@pytest.mark.parametrize("name", ["sample", "sample:h200"])
def test_an_exported_stage_is_the_same_after_an_import(name: str, tmp_path: Path) -> None:
    with contextlib.closing(RecordingReader.open(resolve(name))) as reader:
        lines = [*aiperf_records(reader, exported_stages(reader, None)[0])]
    source, target = tmp_path / "profile_export.jsonl", tmp_path / "run.servetop"
    source.write_text("".join(lines), encoding="utf-8")
    record_import(read_results(source)[0], source, target)
    with contextlib.closing(RecordingReader.open(target)) as reader:
        again = [json.loads(each) for each in aiperf_records(reader, exported_stages(reader, None)[0])]
    assert len(again) == len(lines)
    for found, line in zip(again, lines, strict=True):
        expected = json.loads(line)
        assert found["metrics"].keys() == expected["metrics"].keys()
        for key, metric in expected["metrics"].items():
            assert found["metrics"][key]["value"] == pytest.approx(metric["value"], rel=1e-4, abs=0.002), key
        for key in ("credit_issued_ns", "request_start_ns", "request_end_ns"):
            assert found["metadata"][key] == pytest.approx(expected["metadata"][key], abs=2_000)
        assert found.get("error") == expected.get("error")


@pytest.mark.parametrize(("apart", "scheduled"), [(0.0, False), (1.0, True)])
def test_without_a_load_in_the_summary_the_times_tell_the_loop(apart: float, scheduled: bool) -> None:
    times = ("credit_issued_ns", "request_start_ns", "request_ack_ns", "request_end_ns")
    first = row()["metadata"]
    later = [row(**{name: first[name] + round(number * apart * 1e9) for name in times}) for number in range(20)]
    load = read_aiperf_records(iter(later), Path("nowhere") / "profile_export.jsonl").load
    assert (load.scheduled, load.is_limited) == (scheduled, False)


def test_a_summary_without_the_configuration_is_said_to_lack_it(tmp_path: Path) -> None:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        stage = exported_stages(reader, None)[0]
        (tmp_path / "profile_export.jsonl").write_text("".join(aiperf_records(reader, stage)), encoding="utf-8")
        (tmp_path / SUMMARY_FILE).write_text("".join(aiperf_summary(reader, stage)), encoding="utf-8")
    (found,) = read_results(tmp_path / "profile_export.jsonl")
    assert found.remarks == [f"{SUMMARY_FILE} has no input_config: model, rate and concurrency are unknown"]


@pytest.mark.parametrize(
    ("phase", "load"), [({"type": "poisson", "rate": 8.0}, (8.0, None)), ({"concurrency": 16}, (float("inf"), 16))]
)
def test_the_load_and_the_model_of_a_newer_summary_are_read(
    phase: dict[str, Any], load: tuple[float, int | None], tmp_path: Path
) -> None:
    warm_up = {"name": "warmup", "kind": "warmup", "concurrency": 2}
    phases = [warm_up, {"name": "profiling", "kind": "profiling", "requests": 280, **phase}]
    set_up = {"models": {"items": [{"name": "tiny"}]}, "endpoint": {"type": "chat"}, "phases": phases}
    (tmp_path / "profile_export_aiperf.json").write_text(json.dumps({"input_config": set_up}), encoding="utf-8")
    result = read_aiperf_records(iter([row()]), tmp_path / "profile_export.jsonl")
    assert (result.load.request_rate, result.load.max_concurrency, result.model) == (*load, "tiny")
