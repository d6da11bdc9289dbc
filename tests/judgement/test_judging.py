"""The judgement of simulated runs, and the figures about it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.diagnosis.run_verdict import RunCause
from tests.judgement.__main__ import MARK, main
from tests.judgement.judging import Score, report, score
from tests.judgement.kinds import KINDS, scenario
from tests.judgement.report_page import write_between_marks

RIGHT = Score(
    kind="kv overload", name="kv 0", right=True, verdict=RunCause.KV, onset_error=-0.5, knee_error=0.02,
    sustainable_error=-0.04, kept_excess=math.nan, right_now=1.0, changes=0, alarms=math.nan,
)  # fmt: skip


SHORT = {"kv": 4, "batch": 4, "rate": 5, "ramp": 2}
"""Scenarios whose true rates take the fewest simulated runs to find."""


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_run_of_each_kind_is_judged_rightly(kind: str) -> None:
    judged = score(scenario(kind, SHORT.get(kind, 1), seed=21))
    assert judged.right
    assert not judged.right_now < 0.9
    assert not judged.alarms > 0.02
    assert not abs(judged.knee_error) > 0.2
    assert not abs(judged.sustainable_error) > 0.2
    assert not judged.kept_excess > 0


def test_the_tables_count_misses_and_name_them() -> None:
    wrong = replace(RIGHT, name="kv 1", right=False, verdict=RunCause.BATCH, onset_error=3.0, sustainable_error=0.12)
    lines = report([RIGHT, wrong])
    assert "| kv overload | 2 | 50.0% | 50.0% | 100.0% | 0.00 |" in lines
    assert "| sustainable | 2 | 50.0% | 8.0% | +12.0% |" in lines
    assert lines[-1] == "- kv 1: verdict batch-bound, onset +3.0 s, sustainable +12%"


def test_a_rate_that_was_kept_is_wrong_only_above_the_sustainable_one() -> None:
    healthy = replace(RIGHT, name="healthy 0", knee_error=math.nan, sustainable_error=math.nan, kept_excess=0.0)
    lines = report([healthy, replace(healthy, name="healthy 1", kept_excess=0.03)])
    assert "| sustainable | 0 | – | – | – |" in lines
    kept = "Rates that healthy runs claim as kept: 2, of which 1 are above the sustainable rate; the highest by 3.0%."
    assert kept in lines
    assert lines[-1] == "- healthy 1: claimed as kept +3.0%"


def test_the_figures_are_written_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{MARK}\nold\n{MARK}\n\nend\n")
    write_between_marks(page, ["Seeds 21: 74 runs."], mark=MARK)
    assert page.read_text() == f"# Page\n\n{MARK}\n\nSeeds 21: 74 runs.\n\n{MARK}\n\nend\n"


def test_the_command_prints_verdicts_and_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(KINDS, "client", KINDS["client"][:1])
    assert main(["--judge", "--seed", "21", "--kind", "client"]) == 0
    printed = capsys.readouterr().out
    assert "client 0 of seed 21      client-bound" in printed
    assert "right cause" in printed
