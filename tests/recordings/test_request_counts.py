"""The numbers of requests by stage and status are those of the file, also after it has changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.recordings.rows import change


def test_requests_are_counted_again_after_a_commit(
    tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord]
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    failed = make_request(0, 0.0, stage=1, status=RequestStatus.ERROR)
    recorder.commit(TickTransaction(requests=[failed, make_request(1, 0.1), make_request(2, 0.2)]))
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        first = reader.request_counts()
        assert first == {0: {"ok": 2}, 1: {"error": 1}}
        assert reader.request_counts() is first
        recorder.commit(TickTransaction(requests=[make_request(3, 0.3, stage=1)]))
        assert reader.request_counts() == {0: {"ok": 2}, 1: {"error": 1, "ok": 1}}


def test_requests_without_a_status_or_of_another_stage_are_counted_as_in_the_rows(
    tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord]
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.commit(TickTransaction(requests=[make_request(number, 0.0, stage=number // 4) for number in range(12)]))
    change(
        recorder.path,
        "UPDATE request SET status = 'timeout' WHERE id IN (4, 5, 6, 7, 8)",
        "UPDATE request SET status = NULL WHERE id = 9",
        "UPDATE request SET stage = 'odd' WHERE id = 10",
        "UPDATE request SET stage = NULL WHERE id = 0",
    )
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        assert reader.request_counts() == {0: {"ok": 3}, 1: {"timeout": 4}, 2: {"timeout": 1, "None": 1, "ok": 1}}
