"""The judgement for scrapers: that of the dashboard, computed no more often than it is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.core.config import RunConfig
from servetop.core.interfaces.run_source import RunUpdate
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.run.exporter import run_judge
from servetop.run.exporter.run_judge import REFRESH_SECONDS, RunJudge
from servetop.tui.state.frame import View
from servetop.tui.state.playhead import Playhead
from servetop.tui.state.run_state import RunState
from tests.run.exporter.recorded import transactions


@pytest.fixture(scope="module")
def sample() -> Iterator[RecordingReader]:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        yield reader


def judge_of(reader: RecordingReader) -> RunJudge:
    judge = RunJudge(reader.header.config)
    assert reader.header.engine is not None
    judge.set_engine(reader.header.engine)
    return judge


def test_there_is_no_judgement_before_the_first_tick() -> None:
    judge = RunJudge(RunConfig())
    judge.add(TickTransaction())
    assert judge.judgement() is None


def test_a_scraped_run_has_the_verdicts_of_the_dashboard(sample: RecordingReader) -> None:
    judge, state, seen = judge_of(sample), RunState(sample.header), set()
    for number, transaction in enumerate(transactions(sample)):
        judge.add(transaction)
        ticks = [] if transaction.tick is None else [transaction.tick]
        state.fold(RunUpdate(ticks=ticks, stages=transaction.stages, notes=transaction.notes))
        if number % 40 == 39 and transaction.tick is not None:
            found = judge.judgement()
            assert found is not None
            assert found.at == transaction.tick.end
            frame = state.at(View(playhead=Playhead(at=found.at)), live=True)
            assert frame.verdict is not None
            assert (found.bottleneck, found.trust) == (frame.verdict.bottleneck, frame.stats.trust.verdict)
            seen.add(found.bottleneck)
    assert Bottleneck.KV in seen
    assert len(seen) >= 3


def test_a_judgement_is_computed_again_only_after_some_seconds(sample: RecordingReader) -> None:
    judge, ages = judge_of(sample), []
    for transaction in list(transactions(sample))[:80]:
        judge.add(transaction)
        found = judge.judgement()
        assert found is not None
        assert transaction.tick is not None
        ages.append(transaction.tick.end - found.at)
    assert max(ages) == REFRESH_SECONDS - 0.25
    assert ages.count(0.0) == 80 * 0.25 / REFRESH_SECONDS


def test_a_first_scrape_late_in_a_run_judges_the_last_ticks(
    sample: RecordingReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_judge, "MOST_TICKS", 200)
    judge = judge_of(sample)
    for transaction in transactions(sample):
        judge.add(transaction)
    found = judge.judgement()
    assert found is not None
    for transaction in transactions(sample):  # more ticks than it keeps
        judge.add(transaction)
    assert judge.judgement() is not None
