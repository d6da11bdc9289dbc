"""The matrix of observations and kinds, and its command."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from tests.judgement.judge_statements import MARK, main
from tests.judgement.kinds import KINDS, scenario
from tests.judgement.matrix import Outcome, outcomes
from tests.judgement.matrix_report import matrix_report
from tests.judgement.observed import OBSERVATIONS
from tests.judgement.scenario import Cause

TRUE = Outcome(
    kind="kv overload", name="kv 0", observation="whole", false=(), verdict=Cause.KV, cause=Cause.KV, named=True,
    onset_error=0.5, lower_bounds=0, false_bounds=0, unknown=(), rates=1, right_rates=1,
)  # fmt: skip


def test_the_matrix_counts_true_false_and_silent_runs() -> None:
    silent = dataclasses.replace(TRUE, name="kv 1", verdict=None, named=False, onset_error=math.nan, right_rates=0)
    false = dataclasses.replace(silent, observation="1 Hz", false=("headroom",), verdict=Cause.HEALTHY)
    lines = matrix_report([TRUE, silent, false])
    assert "2 runs, judged 3 times. Each cell: true / false / silent." in lines
    assert "| kv overload | 2 | 1 / 0 / 1 | 0 / 1 / 0 |" in lines
    assert "| runs with a false statement |  | 0.0% | 100.0% |" in lines
    assert "| sustainable rates within 25 % |  | 1 of 2 | 0 of 1 |" in lines
    assert lines[-1] == "- kv 1, 1 Hz: headroom"


def test_a_healthy_run_with_another_cause_and_a_false_bound_are_counted() -> None:
    healthy = dataclasses.replace(TRUE, cause=Cause.HEALTHY, named=False, lower_bounds=1, false_bounds=1, rates=0)
    lines = matrix_report([healthy])
    assert "| healthy runs with another cause |  | 100.0% |" in lines
    assert "| lower bounds above the truth |  | 1 of 1 |" in lines


def test_a_sentence_that_is_not_scored_is_told_once() -> None:
    lines = matrix_report([dataclasses.replace(TRUE, unknown=("'a' of 'b'",))] * 2)
    assert lines.count("- not scored: 'a' of 'b'") == 1


@pytest.mark.parametrize("kind", ["kv", "failing", "healthy"])
def test_each_sentence_about_a_run_is_scored_with_every_observation(kind: str) -> None:
    found = {each.observation: each for each in outcomes(scenario(kind, 1, seed=22))}
    assert set(found) == set(OBSERVATIONS) - {"one of two"}
    assert [text for each in found.values() for text in each.unknown] == []
    assert found["whole"].named


def test_the_command_writes_the_matrix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(KINDS, "client", KINDS["client"][:1])
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n{MARK}\n{MARK}\n")
    assert main(["--seed", "22", "--kind", "client", "--report", str(page)]) == 0
    assert "client 0 of seed 22" in capsys.readouterr().out
    assert "| slow client | 1 |" in page.read_text()
