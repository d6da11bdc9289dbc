"""The trace of a recording: its slices, counters and what is left out."""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.events import GpuSample, Note, RunEnd, Severity
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, Tick
from servetop.recordings.format.schema import REQUEST, TICK
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.export import trace_events
from servetop.reports.export.trace_events import CLIENT, ENGINE, GPUS, REQUESTS, RUN, trace_text
from servetop.reports.summary.recorded_run import recorded_run

Event = dict[str, Any]


@pytest.fixture(scope="module")
def sample() -> Iterator[RecordingReader]:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        yield reader


@pytest.fixture(scope="module")
def events(sample: RecordingReader) -> list[Event]:
    found: list[Event] = json.loads("".join(trace_text(sample)))["traceEvents"]
    return found


def requests_of(events: list[Event]) -> list[Event]:
    return [each for each in events if each["pid"] == REQUESTS and each["ph"] == "X" and "status" in each["args"]]


def test_every_request_is_a_slice_from_due_to_its_end(sample: RecordingReader, events: list[Event]) -> None:
    slices = {each["name"]: each for each in requests_of(events)}
    recorded = list(sample.stream(REQUEST))
    assert len(slices) == len(recorded) == 803
    for request in recorded:
        found = slices[f"request {request.id}"]
        assert found["ts"] == round(request.due * 1e6)
        assert found["ts"] + found["dur"] == round((request.done_at or request.due) * 1e6)
        assert found["args"]["output_tokens"] == request.output_tokens


def test_the_parts_of_a_request_fill_it_and_no_slices_of_a_track_overlap(events: list[Event]) -> None:
    tracks: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for each in events:
        if each["ph"] == "X":
            assert each["dur"] >= 0
            tracks[each["pid"], each["tid"]].append(each)
    for (pid, _), slices in tracks.items():
        whole = [each for each in slices if pid != REQUESTS or "status" in each["args"]]
        parts = [each for each in slices if each not in whole]
        ordered = sorted((each["ts"], each["ts"] + each["dur"]) for each in whole)
        assert all(before[1] <= after[0] for before, after in pairwise(ordered))
        covered = sum(each["dur"] for each in parts)
        assert not parts or covered == pytest.approx(sum(each["dur"] for each in whole), abs=5 * len(whole))


def test_counters_are_those_of_ticks_and_samples(sample: RecordingReader, events: list[Event]) -> None:
    sent = [each for each in events if each["ph"] == "C" and (each["pid"], each["name"]) == (CLIENT, "requests/s")]
    assert sum(each["args"]["sent"] for each in sent) == 4 * sum(tick.client.sent for tick in sample.stream(TICK))
    usage = [each["args"]["used"] for each in events if each["ph"] == "C" and each["name"] == "KV blocks used, %"]
    assert 99 < max(usage) <= 100
    assert all(each["pid"] == ENGINE for each in events if each["name"] == "preemptions" and each["ph"] == "C")


def test_stages_and_episodes_are_slices_of_the_run(sample: RecordingReader, events: list[Event]) -> None:
    names = [each["name"] for each in events if each["ph"] == "X" and each["pid"] == RUN]
    record = recorded_run(sample)
    assert names[: len(record.stages)] == [stage.label for stage in record.stages]
    assert len(names) == len(record.stages) + len(record.episodes)


def test_what_needs_too_many_lanes_is_counted(sample: RecordingReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_events, "MOST_LANES", 4)
    trace = json.loads("".join(trace_text(sample)))
    drawn = requests_of(trace["traceEvents"])
    assert trace["otherData"]["requests_left_out"] == 803 - len(drawn) > 0
    assert {each["tid"] for each in drawn} == {1, 2, 3, 4}


def test_hostile_texts_and_missing_values_leave_the_trace_readable(tmp_path: Path) -> None:
    header = RunHeader(config=RunConfig(), anchor=ClockAnchor.take())
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    note = Note(at=0.1, severity=Severity.WARNING, source="user", text='a "mark"\n##[error]\u2028\x1b[31m')
    gpu = GpuSample(at=0.2, index=1, name="H100")
    recorder.commit(TickTransaction(tick=Tick(client=ClientTick(index=0)), notes=[note], gpu_samples=[gpu]))
    recorder.close(RunEnd(at=1.0, exit_code=0, reason=""))
    with contextlib.closing(RecordingReader.open(tmp_path / "run.servetop")) as reader:
        text = "".join(trace_text(reader))
    assert text.isascii()
    assert "##" not in text
    found = json.loads(text)["traceEvents"]
    assert [each["name"] for each in found if each["ph"] == "i"] == [note.text]
    assert [each["args"]["name"] for each in found if each["pid"] == GPUS + 1 and each["name"] == "process_name"]
    assert not [each for each in found if each["ph"] == "C" and each["pid"] == GPUS + 1]
