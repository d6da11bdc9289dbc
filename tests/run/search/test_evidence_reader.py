"""The evidence of a search is what its recording has."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.events import RequestRecord, RequestStatus, RunEnd, StageChange
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.run.search.evidence_reader import EvidenceReader
from servetop.run.search.objective_text import parse_objective
from tests.run.search.restarted_run import record_restart
from tests.run.search.searches import config, record

TTFT = (parse_objective("p99_ttft<300ms"),)


def test_every_request_of_a_recording_counts(tmp_path: Path) -> None:
    with contextlib.closing(RecordingReader.open(record(tmp_path / "run.servetop", 5.0, 10.0))) as reader:
        evidence = EvidenceReader(reader, TTFT, goodput={}).read()
        requests = reader.requests(0.0, math.inf)
    assert [each.load for each in evidence.probes] == [5.0, 10.0]
    assert evidence.probes[0].end == pytest.approx(evidence.probes[1].begin)
    assert evidence.probes[1].end == pytest.approx(evidence.probes[1].begin + 8, abs=0.3)
    assert evidence.due.tolist() == sorted(each.due for each in requests)
    assert evidence.counted[0].sum() == len(requests)
    late = sum((each.ttft or math.inf) > 0.3 for each in requests)
    assert evidence.missed[0].sum() == late
    assert (evidence.levels[0] > 0).sum() == late
    kept = [each.ttft for each in requests if each.ttft is not None]
    assert sorted(0.3 * np.exp(evidence.levels[0])) == pytest.approx(sorted(kept), abs=1e-6)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    header = RunHeader(config=config(), anchor=ClockAnchor.take())
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    yield recorder
    recorder.close(RunEnd(at=1.0, exit_code=0, reason=""))


def tick(index: int, *, in_flight: int) -> Tick:
    return Tick(client=ClientTick(index=index, gauges=LoadGauges(stage=0, request_rate=4.0, in_flight=in_flight)))


def ended(number: int, due: float, *, ttft: float = 0.1, status: RequestStatus = RequestStatus.OK) -> RequestRecord:
    return RequestRecord(
        id=number,
        stage=0,
        due=due,
        sent=due,
        first_token_at=due + ttft if status is RequestStatus.OK else None,
        done_at=due + 0.2,
        prompt_tokens=8,
        output_tokens=1,
        status=status,
        chunk_times=np.array([due + ttft]),
        chunk_tokens=np.array([1]),
    )


def flying(number: int, due: float, *, at: float) -> RequestInFlight:
    return RequestInFlight(at=at, id=number, stage=0, due=due, sent=due, prompt_tokens=8)


START = StageChange(at=0.0, index=0, label="", request_rate=4.0, max_concurrency=None, max_num_seqs=None)


def test_only_new_rows_are_added(recorder: Recorder) -> None:
    recorder.commit(TickTransaction(tick=tick(0, in_flight=0), stages=[START], requests=[ended(0, 0.0)]))
    with contextlib.closing(RecordingReader.open(recorder.path)) as opened:
        reader = EvidenceReader(opened, TTFT, goodput={})
        assert reader.read().due.tolist() == [0.0]
        failed = ended(1, 0.1, status=RequestStatus.ERROR)
        recorder.commit(TickTransaction(tick=tick(1, in_flight=0), requests=[failed]))
        evidence = reader.read()
    assert evidence.due.tolist() == [0.0, 0.1]
    assert (evidence.counted[0].tolist(), evidence.missed[0].tolist()) == ([1, 1], [0, 1])
    assert reader.now == 0.5


def test_a_request_in_flight_has_no_end(recorder: Recorder) -> None:
    rows = [flying(1, 0.1, at=0.9), flying(2, 0.8, at=0.9)]
    recorder.commit(
        TickTransaction(tick=tick(3, in_flight=2), stages=[START], requests=[ended(0, 0.0)], in_flight=rows)
    )
    with contextlib.closing(RecordingReader.open(recorder.path)) as opened:
        evidence = EvidenceReader(opened, TTFT, goodput={}).read()
    assert np.isnan(evidence.done).tolist() == [False, True, True]
    assert evidence.missed[0].tolist() == [0, 1, 0], "0.8 s without a first token are more than 300 ms"
    assert evidence.probes[-1].end == 0.9


def test_requests_beyond_the_recorded_number_are_in_flight_too(recorder: Recorder) -> None:
    rows = [flying(8, 4.0, at=4.9)]
    recorder.commit(
        TickTransaction(
            tick=tick(19, in_flight=3), stages=[START], requests=[ended(0, 0.0), ended(4, 2.0)], in_flight=rows
        )
    )
    with contextlib.closing(RecordingReader.open(recorder.path)) as opened:
        evidence = EvidenceReader(opened, TTFT, goodput={}).read()
    assert evidence.due.tolist() == [0.0, 2.0, 3.0, 3.5, 4.0]
    assert evidence.counted[0].tolist() == [1, 1, 0, 0, 1]


def test_what_was_seen_before_a_restart_of_the_server_is_set_apart(tmp_path: Path) -> None:
    with contextlib.closing(RecordingReader.open(record_restart(tmp_path / "run.servetop"))) as opened:
        evidence = EvidenceReader(opened, TTFT, goodput={}).read()
    assert [(each.begin, each.end) for each in evidence.earlier] == [(0.0, 8.0)]
    assert [(each.begin, each.end) for each in evidence.probes] == [(8.0, 12.0)]
    assert (evidence.restarted_at, evidence.seconds) == (8.0, 12.0)
