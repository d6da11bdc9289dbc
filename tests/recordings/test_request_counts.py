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
