"""`--against`: which file it names, and what happens if that cannot be compared with."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.comparison.verdicts import Verdict
from servetop.cli.options.output_options import DisplayOptions
from servetop.cli.viewing.baseline_file import (
    baseline_opener,
    comparer,
    with_baseline_path,
    without_stage_in_force,
)
from servetop.cli.web.web import viewer_command
from servetop.core.errors import RecordingError
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.load_comparison import RecordedColumns
from tests.harness import Servetop

GOLDEN = Path(__file__).parents[1] / "golden" / "whitepaper.servetop"


def test_without_the_option_there_is_no_baseline() -> None:
    assert with_baseline_path(DisplayOptions()).against == ""
    assert baseline_opener(DisplayOptions()) is None


def test_a_name_becomes_a_path_that_pages_use_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN.parent)
    display = with_baseline_path(DisplayOptions(against=GOLDEN.name))
    assert display.against == str(GOLDEN)
    assert viewer_command(tmp_path / "run.servetop", display, steer=False)[-2:] == ["--against", str(GOLDEN)]
    opened = baseline_opener(display)
    assert opened is not None
    with opened() as source:
        assert source.name == "whitepaper"


def test_a_baseline_that_cannot_be_read_is_rejected_before_a_run_starts(tmp_path: Path) -> None:
    (tmp_path / "text.servetop").write_text("not a recording")
    for name in ("missing", str(tmp_path / "text.servetop")):
        with pytest.raises(RecordingError):
            with_baseline_path(DisplayOptions(against=name))


def test_a_run_does_not_differ_from_itself() -> None:
    compare = comparer(with_baseline_path(DisplayOptions(against=str(GOLDEN))))
    assert compare is not None
    found = compare(GOLDEN)
    assert found.stages
    assert not found.causes
    verdicts = {each.verdict for stage in found.stages for each in stage.metrics}
    assert not verdicts & {Verdict.BETTER, Verdict.WORSE}


def test_the_stage_in_force_of_a_live_run_is_not_compared() -> None:
    with contextlib.closing(RecordingReader.open(GOLDEN)) as reader:
        run, stages = RecordedColumns.load(reader).measured(), reader.stages()
    over = without_stage_in_force(run, stages)
    assert len(over.arm.stages) == len(run.arm.stages) - 1
    restarting = [*stages, replace(stages[-1], at=stages[-1].at + 60, index=-1, request_rate=None)]
    assert without_stage_in_force(run, restarting).arm.stages == run.arm.stages


@pytest.mark.integration
@pytest.mark.parametrize("other", ["--headless", "--json", "--detach"])
def test_a_run_without_a_dashboard_draws_no_baseline(servetop: Servetop, other: str) -> None:
    done = servetop(other, "--against", str(GOLDEN))
    assert done.code == 2
    assert f"--against and {other} exclude each other" in done.complaint
