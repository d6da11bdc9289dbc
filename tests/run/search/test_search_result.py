"""The result of a search is what its recording shows."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from servetop import api
from servetop.analysis.summary.summary_json import plain_object
from servetop.core.errors import ExitCode
from servetop.core.events import RunEnd
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.resume import resume_recording
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from servetop.run.search.answer_line import answer_line
from servetop.run.search.recorded_probes import probe_note
from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_end import searched_end
from servetop.run.search.search_evidence import NextProbe, Purpose
from servetop.run.search.search_result import Confirmation, SearchResult, search_result
from servetop.run.search.search_schema import search_schema
from tests.house.source_tree import TOP
from tests.run.search.restarted_run import record_restart
from tests.run.search.searches import FOUND, SEARCH, config, record, setup

OK = RunEnd(at=17.0, exit_code=0, reason="")


WIDE = dataclasses.replace(FOUND, kind=AnswerKind.WIDE, low=8.0, high=13.0)
BELOW = dataclasses.replace(FOUND, kind=AnswerKind.BELOW, load=None, low=0.0, high=1.0)


def result_of(
    path: Path, end: RunEnd | None = None, *, answer: TierAnswer = FOUND, loads: Sequence[NextProbe] = ()
) -> SearchResult:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return search_result(reader, run_summary(reader), end=end, setup=setup(*loads, answer=answer))


def test_a_load_that_is_found_is_a_success(tmp_path: Path) -> None:
    result = result_of(record(tmp_path / "run.servetop", 2.0, 5.0), OK)
    (tier,) = result.tiers
    assert (tier.slo, tier.load, tier.low, tier.high) == ("p99_ttft<500ms", 11.2, 10.9, 11.5)
    assert tier.text.endswith(" serves 11.2 req/s [10.9, 11.5] within p99 TTFT ≤ 500 ms")
    assert (result.exit_code, result.error, result.complete) == (0, None, True)
    assert (result.probes, round(result.seconds)) == (2, 16)


def test_an_answer_that_is_not_resolved_cannot_tell(tmp_path: Path) -> None:
    result = result_of(record(tmp_path / "run.servetop", 2.0, 5.0), OK, answer=WIDE)
    (tier,) = result.tiers
    assert (tier.kind, tier.binding_text) == (AnswerKind.WIDE, None)
    assert (result.exit_code, result.error) == (ExitCode.CANNOT_TELL, tier.text)


def test_a_search_with_a_load_to_try_is_not_complete(tmp_path: Path) -> None:
    loads = [NextProbe(load=2.0, seconds=8.0)] * 2
    assert not result_of(record(tmp_path / "run.servetop", 2.0), loads=loads).complete


def test_a_recorded_end_is_not_judged_again(tmp_path: Path) -> None:
    result = result_of(record(tmp_path / "run.servetop", 2.0), answer=WIDE)
    assert (result.exit_code, result.error) == (0, None)


def test_an_interruption_has_precedence(tmp_path: Path) -> None:
    end = RunEnd(at=9.0, exit_code=int(ExitCode.INTERRUPTED), reason="interrupted")
    result = result_of(record(tmp_path / "run.servetop", 2.0), end, answer=WIDE)
    assert (result.exit_code, result.error) == (ExitCode.INTERRUPTED, "interrupted")
    assert result.tiers[0].text


def test_the_least_load_beyond_the_objectives_is_an_objective_missed(tmp_path: Path) -> None:
    result = result_of(record(tmp_path / "run.servetop", 1.0), OK, answer=BELOW)
    assert (result.tiers[0].kind, result.tiers[0].low) == (AnswerKind.BELOW, None)
    assert result.exit_code == ExitCode.THRESHOLDS


def test_the_end_of_a_run_has_the_answer_as_headline(tmp_path: Path) -> None:
    with contextlib.closing(RecordingReader.open(record(tmp_path / "run.servetop", 2.0, 5.0))) as reader:
        end, headline, _ = searched_end(reader, None, OK)
    assert " within p99 TTFT ≤ 500 ms" in headline
    assert end.at == OK.at


def test_a_price_becomes_the_cost_of_output_tokens(tmp_path: Path) -> None:
    result = result_of(record(tmp_path / "run.servetop", 2.0, prices=("$2.5/h",)))
    assert result.cost_per_million_output_tokens is not None
    assert result.currency == "$"


def test_the_json_has_the_keys_of_the_schema(tmp_path: Path) -> None:
    document = json.loads((TOP / "docs/schema/search.json").read_text(encoding="utf-8"))
    assert document == search_schema()
    found = plain_object(result_of(record(tmp_path / "run.servetop", 2.0)))
    assert set(found) == set(document["required"])
    assert set(found["tiers"][0]) == set(document["$defs"]["tier_result"]["required"])


def test_python_returns_the_result_of_a_search(tmp_path: Path) -> None:
    search = dataclasses.replace(SEARCH, budget=10.0)
    result = api.search(config(search=search), tmp_path / "run.servetop")
    assert [tier.slo for tier in result.tiers] == ["p99_ttft<500ms"]
    assert result.recording == str(tmp_path / "run.servetop")


@pytest.mark.parametrize("code", [ExitCode.ENGINE_FAILED, ExitCode.RUN_FAILED])
def test_a_failed_run_keeps_its_code(tmp_path: Path, code: ExitCode) -> None:
    end = RunEnd(at=9.0, exit_code=int(code), reason="the engine died")
    assert result_of(record(tmp_path / "run.servetop", 2.0), end).exit_code == code


def confirmed(path: Path, slo: str) -> Confirmation:
    """What a confirmation at 5 req/s showed."""
    found = result_with_confirmation(path, slo).confirmation
    assert found is not None
    return found


def result_with_confirmation(path: Path, slo: str, *, answer: TierAnswer = FOUND) -> SearchResult:
    """The result of a search whose last load, 5 req/s, is its confirmation."""
    record(path, 2.0, 5.0)
    recorder, _ = resume_recording(path)
    recorder.commit(TickTransaction(notes=[probe_note("", at=16.0, stage=1, purpose=Purpose.CONFIRM)]))
    recorder.close(OK)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        search = setup(search=dataclasses.replace(SEARCH, slo=(slo,)), answer=answer)
        return search_result(reader, run_summary(reader), setup=search)


@pytest.mark.parametrize(("slo", "kept"), [("p99_ttft<10s", True), ("p99_ttft<1ms", False)])
def test_a_confirmation_shows_whether_the_load_keeps_the_objectives(tmp_path: Path, slo: str, kept: bool) -> None:
    found = confirmed(tmp_path / "run.servetop", slo)
    assert (found.load, round(found.seconds), found.kept) == (5.0, 8, kept)
    assert found.seen[0].share_within == (1.0 if kept else 0.0)


@pytest.mark.parametrize(
    ("slo", "low", "contradicted"),
    [("p99_ttft<1ms", 5.0, True), ("p99_ttft<1ms", 4.9, False), ("p99_ttft<10s", 5.0, False)],
)
def test_a_confirmation_that_missed_contradicts_an_answer_that_claims_its_load(
    tmp_path: Path, slo: str, low: float, contradicted: bool
) -> None:
    answer = dataclasses.replace(FOUND, low=low)
    result = result_with_confirmation(tmp_path / "run.servetop", slo, answer=answer)
    assert result.tiers[0].contradicted is contradicted
    line = answer_line(result, result.tiers[0])
    assert line.endswith("; but 5 req/s was not kept when it was confirmed: search again with a larger --budget") is (
        contradicted
    )


@pytest.mark.parametrize(("slo", "kept"), [("mean_ttft<10s", True), ("mean_ttft<1ms", False)])
def test_a_confirmation_of_a_mean_has_it_in_seconds(tmp_path: Path, slo: str, kept: bool) -> None:
    found = confirmed(tmp_path / "run.servetop", slo)
    mean, errors = found.seen
    assert (found.kept, mean.kept, mean.share_within, errors.share_within) == (kept, kept, None, 1.0)
    assert mean.mean is not None
    assert 0.001 < mean.mean < 1.0
    assert errors.mean is None
    assert mean.text in found.text


def test_a_search_for_a_mean_has_it_in_its_answer(tmp_path: Path) -> None:
    search = dataclasses.replace(SEARCH, slo=("mean_ttft<10s",), budget=10.0)
    result = api.search(config(search=search), tmp_path / "run.servetop")
    assert "within mean TTFT ≤ 10 s, errors ≤ 1 %" in result.tiers[0].text
    if result.confirmation is not None:
        assert result.confirmation.seen[0].mean is not None
    with contextlib.closing(RecordingReader.open(tmp_path / "run.servetop")) as reader:
        assert search_result(reader, run_summary(reader)).tiers == result.tiers


def test_a_restart_of_the_server_is_in_the_result(tmp_path: Path) -> None:
    result = result_of(record_restart(tmp_path / "run.servetop"), OK)
    assert (result.restarted_at, result.probes, result.seconds) == (8.0, 2, 12.0)
    assert result.warnings[0] == "the server restarted at 0:08: nothing before that counts (1 probe, 0:08 of load)"
    assert plain_object(result)["restarted_at"] == 8.0
    assert result_of(record(tmp_path / "steady.servetop", 2.0, 5.0), OK).restarted_at is None
