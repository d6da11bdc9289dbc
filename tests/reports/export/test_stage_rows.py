"""Which stages are exported, how their files are named, and what is refused."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.core.config import RunConfig
from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.export.stage_rows import exported_stages, requests_of, statistics
from tests.recordings.rows import stage

MakeRequest = Callable[..., RequestRecord]


def recorded(path: Path, header: RunHeader, config: RunConfig, requests: list[RequestRecord]) -> Path:
    """A warm-up and two stages of 5 s."""
    recorder = Recorder.create(path / "run.servetop", dataclasses.replace(header, config=config))
    stages = [stage(0, 0.0, warmup=True), stage(1, 5.0, rate=2.5), stage(2, 10.0, max_concurrency=4)]
    recorder.commit(TickTransaction(requests=requests, stages=stages))
    recorder.close(RunEnd(at=15.0, exit_code=0, reason=""))
    return recorder.path


def test_warm_ups_and_cool_downs_are_left_out(tmp_path: Path, header: RunHeader, make_request: MakeRequest) -> None:
    requests = [make_request(number, float(number), stage=number // 5) for number in range(15)]
    path = recorded(tmp_path, header, RunConfig(cooldown=2.0), requests)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        stages = exported_stages(reader, None)
        assert [[each.id for each in requests_of(reader, stage)] for stage in stages] == [[5, 6], [10, 11]]
        (only,) = exported_stages(reader, 2)
        assert only.stage.stage == 2
        with pytest.raises(UsageError, match="run has no stage 0 with requests: it has 1, 2"):
            exported_stages(reader, 0)


def test_a_file_is_named_as_vllm_names_it_and_stays_in_its_folder(
    tmp_path: Path, header: RunHeader, make_request: MakeRequest
) -> None:
    requests = [make_request(number, 5.0 + number, stage=1 + number // 5) for number in range(10)]
    path = recorded(tmp_path, header, RunConfig(label="../../x\n\x1b[2J"), requests)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        first, second = (each.file_stem for each in exported_stages(reader, None))
    assert first.startswith("_.._x_2J-2.5qps-llama-2-7b-202311")
    assert first.endswith("-stage1")
    assert "-8qps-concurrency4-llama-2-7b-" in second


def test_a_recording_without_requests_is_refused(tmp_path: Path, header: RunHeader) -> None:
    path = recorded(tmp_path, header, RunConfig(), [])
    with (
        contextlib.closing(RecordingReader.open(path)) as reader,
        pytest.raises(UsageError, match="run has no requests"),
    ):
        exported_stages(reader, None)


def test_statistics_of_nothing_are_0_as_in_vllm() -> None:
    assert statistics([None], [50.0, 99.9]) == {"mean": 0.0, "median": 0.0, "std": 0.0, "p50": 0.0, "p99.9": 0.0}
    assert statistics([1.0, None, 3.0], [50.0])["p50"] == 2.0
