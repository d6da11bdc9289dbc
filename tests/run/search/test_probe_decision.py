"""What follows a probe, and what the note of it says."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.core.config import StageConfig
from servetop.core.events import Severity
from servetop.recordings.read.reader import RecordingReader
from servetop.run.search.probe_decision import ProbeDecider
from servetop.run.search.recorded_probes import CLIENT_BOUND, RESTARTED
from servetop.run.search.search_evidence import NextProbe, Purpose
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts, VirtualRunPlan
from tests.judgement.recordings import write_recording
from tests.run.search.restarted_run import record_restart
from tests.run.search.searches import SEARCH, config, record, setup

FIVE, TEN = NextProbe(load=5.0, seconds=8.0), NextProbe(load=10.0, seconds=8.0)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[RecordingReader]:
    with contextlib.closing(RecordingReader.open(record(tmp_path / "run.servetop", 5.0))) as opened:
        yield opened


def decider(reader: RecordingReader, *loads: NextProbe) -> ProbeDecider:
    search = setup(*loads)
    return ProbeDecider(search, search.evidence_reader(reader), reader)


def test_another_load_follows(reader: RecordingReader) -> None:
    decision = decider(reader, FIVE, TEN).decide()
    assert (decision.next, decision.continues) == (TEN, False)
    note = decision.note(3, at=9.0)
    assert note.text == (
        "5 req/s for 8 s: p99 TTFT ≤ 500 ms: 100 % within │ answer 10.9 to 11.5 req/s │ 0:52 left; next 10 req/s"
    )
    assert (note.fact, note.subject, note.count) == ("probe", "measure", 3)


def test_the_same_load_is_kept_for_longer(reader: RecordingReader) -> None:
    decision = decider(reader, FIVE, FIVE).decide()
    assert (decision.next, decision.continues) == (FIVE, True)


def test_a_confirmation_of_the_same_load_is_a_probe_of_its_own(reader: RecordingReader) -> None:
    confirm = NextProbe(load=5.0, seconds=8.0, purpose=Purpose.CONFIRM)
    decision = decider(reader, FIVE, confirm).decide()
    assert not decision.continues
    assert decision.note(3, at=9.0).text.endswith("next 5 req/s to confirm it")


@pytest.mark.parametrize(
    ("prior", "text"),
    [
        (None, "the search begins at 5 req/s"),
        (10.0, "about 10 req/s expected, so the search begins at 5 req/s"),
    ],
)
def test_the_first_note_says_where_the_search_begins_and_why(tmp_path: Path, prior: float | None, text: str) -> None:
    search = setup(FIVE, search=replace(SEARCH, prior=prior))
    warmup = config(StageConfig(max_concurrency=1, num_prompts=2, warmup=True))
    write_recording(run_virtually(VirtualRunPlan(config=warmup)), tmp_path / "run.servetop")
    with contextlib.closing(RecordingReader.open(tmp_path / "run.servetop")) as nothing:
        first = ProbeDecider(search, search.evidence_reader(nothing), nothing)
        assert first.first().text == text


def test_a_search_that_continues_says_so(reader: RecordingReader) -> None:
    search = setup(FIVE, TEN, search=replace(SEARCH, prior=10.0))
    resumed = ProbeDecider(search, search.evidence_reader(reader), reader)
    assert resumed.first().text == "the search continues at 10 req/s"


def test_a_search_ends_without_a_next_load(reader: RecordingReader) -> None:
    decision = decider(reader, FIVE).decide()
    assert (decision.next, decision.note(3, at=9.0).fact) == (None, None)


def test_a_session_begins_with_a_load_of_the_plan(reader: RecordingReader) -> None:
    found = decider(reader, FIVE, TEN).first()
    assert found.probe == TEN
    note = found.note(1)
    assert (note.text, note.count) == ("the search continues at 10 req/s", 1)


def test_a_client_that_is_late_twice_ends_the_search(tmp_path: Path) -> None:
    path = record(tmp_path / "late.servetop", 5.0, client=ClientCosts(per_request=0.3))
    with contextlib.closing(RecordingReader.open(path)) as opened:
        found = decider(opened, FIVE, FIVE)
        assert found.decide().continues, "one judgement may be a disturbance"
        decision = found.decide()
    assert decision.next is None
    note = decision.note(3, at=9.0)
    assert (note.fact, note.severity) == (CLIENT_BOUND, Severity.WARNING)
    assert note.text.startswith("client-bound at 5 req/s: ")


def test_a_restart_of_the_server_is_told_once(tmp_path: Path) -> None:
    path = record_restart(tmp_path / "run.servetop")
    with contextlib.closing(RecordingReader.open(path)) as opened:
        found = decider(opened, FIVE, TEN, FIVE)
        (note,) = found.decide().warnings
        assert note.text == "the server restarted at 0:08: nothing before that counts (1 probe, 0:08 of load)"
        assert (note.fact, note.count) == (RESTARTED, 1)
        assert found.decide().warnings == ()
    with contextlib.closing(RecordingReader.open(path)) as opened:
        resumed = decider(opened, FIVE, TEN)
        assert resumed.first().text == "the search continues at 10 req/s"
        assert resumed.decide().warnings == (), "it was told in the session before"
