"""Attempts read from the last tick of each stage are those read from all ticks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.core.events import RequestRecord, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.load_attempts import load_attempts
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.recordings.rows import change, stage
from tests.recordings.test_load_requests import golden


@pytest.mark.parametrize("name", ["sample:overload", "sample:h200", "vllm", "whitepaper", "dies", "without_metrics"])
def test_the_attempts_are_the_same(name: str, tmp_path: Path) -> None:
    path = resolve(name) if name.startswith("sample") else golden(name, tmp_path)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert load_attempts(reader, None) == load_attempts(reader, reader.ticks())


@pytest.mark.parametrize(("left", "expected"), [(0, ["whole", "whole"]), (2, ["whole", "cut-short"])])
def test_requests_in_flight_in_the_last_tick_of_a_stage_cut_it_short(
    left: int,
    expected: list[str],
    tmp_path: Path,
    header: RunHeader,
    make_tick: Callable[..., Tick],
    make_request: Callable[..., RequestRecord],
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    ticks = [make_tick(number, in_flight=left if number in (3, 9) else 7) for number in (0, 1, 2, 3, 6, 7, 9)]
    for number, tick in enumerate(ticks):
        stages = [stage(0, 0.0, duration=1.0), stage(1, 1.0, duration=1.0)] if number == 0 else []
        recorder.commit(TickTransaction(tick=tick, stages=stages, requests=[make_request(number, number / 4)]))
    recorder.close(RunEnd(at=2.5, exit_code=1, reason="killed"))
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        found = load_attempts(reader, None)
        assert found == load_attempts(reader, reader.ticks())
    assert [str(each.state) for each in found.values()] == expected


def test_of_a_damaged_file_all_ticks_are_read(tmp_path: Path) -> None:
    path = golden("whitepaper", tmp_path)
    change(path, "UPDATE tick SET ok = ok + 1 WHERE seq = (SELECT max(seq) FROM tick)")
    with contextlib.closing(RecordingReader.open(path)) as reader:
        every = load_attempts(reader, reader.ticks())
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert load_attempts(reader, None) == every
