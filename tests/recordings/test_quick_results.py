"""The main results in the list of recordings, against the summary's."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servetop.core.events import RequestRecord, RequestStatus, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.library.folder_store import FolderStore
from servetop.recordings.read import quick_results
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.recordings import rows

MakeTick = Callable[..., Tick]


@pytest.fixture
def recording(tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord]) -> Callable[..., Path]:
    """A recording of a warm-up request with a TTFT of 9 s, then of 99 with 0.1 s and one with 2 s, one that failed."""

    def make(goodput: dict[str, float], preemptions: list[float | None], headline: str | None = None) -> Path:
        config = dataclasses.replace(header.config, goodput=goodput)
        recorder = Recorder.create(tmp_path / "one.servetop", dataclasses.replace(header, config=config))
        quick = make_request(0, stage=1, due=20.0, sent=20.0, first_token_at=20.1, done_at=20.5)
        slow = dataclasses.replace(quick, first_token_at=22.0, done_at=23.0)
        warmup = dataclasses.replace(quick, stage=0, first_token_at=29.0, done_at=30.0)
        failed = dataclasses.replace(quick, status=RequestStatus.ERROR, first_token_at=None, done_at=20.2)
        requests = [warmup, *[quick] * 99, slow, failed]
        recorder.commit(
            TickTransaction(
                requests=[dataclasses.replace(each, id=number) for number, each in enumerate(requests)],
                engine_samples=[rows.sample(float(at), preemptions_total=each) for at, each in enumerate(preemptions)],
                stages=[rows.stage(0, 1.0, warmup=True), rows.stage(1, 20.0)],
            )
        )
        recorder.close(RunEnd(at=40.0, exit_code=0, reason=""), headline=headline)
        return recorder.path

    return make


def results(path: Path) -> Any:
    return FolderStore(path.parent).preview(path, bins=4).results


def test_latency_and_goodput_are_those_of_successful_requests_after_the_warm_up(
    recording: Callable[..., Path],
) -> None:
    found = results(recording({"ttft": 0.5, "e2el": 1.0}, [0.0]))
    assert found.ttft_p99 == pytest.approx(0.1, abs=0.03)
    assert found.goodput_share == pytest.approx(99 / 101)
    assert found.verdict == ""


@pytest.mark.parametrize(
    ("counter", "total"),
    [([0.0, 3.0, 10.0], 10), ([0.0, 4.0, 0.0, 2.0], 6), ([5.0, 9.0], 4), ([None, None], None), ([], None)],
    ids=["rising", "restarted", "attached", "not exported", "no samples"],
)
def test_preemptions_are_the_increases_of_the_counter(
    recording: Callable[..., Path], counter: list[float | None], total: int | None
) -> None:
    assert results(recording({}, counter)).preemptions == total


def test_goodput_is_unknown_without_objectives_or_if_one_needs_the_chunks(recording: Callable[..., Path]) -> None:
    path = recording({"ttft": 0.5, "tpot": 0.1}, [0.0])
    assert results(path).goodput_share is None
    path.unlink()
    assert results(recording({}, [0.0])).goodput_share is None


def test_latencies_of_very_long_runs_are_left_out(
    recording: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recording({"ttft": 0.5}, [0.0, 7.0])
    monkeypatch.setattr(quick_results, "MOST_REQUESTS", 50)
    found = RecordingReader.open(path).quick_results()
    assert (found.ttft_p99, found.goodput_share, found.preemptions) == (None, None, 7)


def test_the_verdict_is_the_one_stored_at_the_end_of_the_run(recording: Callable[..., Path]) -> None:
    path = recording({}, [0.0], "KV-bound from 0:54")
    assert results(path).verdict == "KV-bound from 0:54"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE run DROP COLUMN headline")
    assert results(path).verdict == ""
