"""The thresholds of recorded watches, as `servetop check` judges them."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.cli.main import main
from servetop.core.errors import ExitCode, UsageError
from servetop.reports.check.check_watches import check_watches, watches_named
from tests.recorded_watches import watch_of_one, watch_of_three
from tests.watched_pages import paged_ticks


def test_a_condition_is_judged_for_each_server(tmp_path: Path) -> None:
    report = check_watches([watch_of_three(tmp_path / "w.servetop")], ["kv_usage<90%", "running>=1"])
    found = {each.title: (each.outcome, each.text) for each in report.items}
    assert found["kv_usage<90% at gpu0"] == (CheckOutcome.BROKEN, "it was broken from 0:19 to the end")
    assert {outcome for title, (outcome, _) in found.items() if title != "kv_usage<90% at gpu0"} == {CheckOutcome.KEPT}
    assert len(found) == 6
    assert report.exit_code is ExitCode.THRESHOLDS
    assert report.reason == "not met: kv_usage<90% at gpu0: it was broken from 0:19 to the end"


def test_the_recorded_thresholds_count_where_none_is_given(tmp_path: Path) -> None:
    path = watch_of_one(tmp_path / "w.servetop", thresholds=("waiting<=50",))
    (item,) = check_watches([path], ()).items
    assert (item.name, item.outcome) == ("waiting<=50", CheckOutcome.KEPT)
    (missing,) = check_watches([path], ["e2el_p90<1s"]).items
    assert (missing.outcome, missing.text) == (CheckOutcome.CANNOT_TELL, "e2el_p90 was not measured")


def test_a_rate_is_that_of_the_server_however_rare_its_metrics_are(tmp_path: Path) -> None:
    path = watch_of_one(tmp_path / "w.servetop", paged_ticks(every=60.0, seconds=200.0))
    kept, broken = check_watches([path], ["output_tokens/s<1000", "output_tokens/s<500"]).items
    assert kept.outcome == CheckOutcome.KEPT, "60 s of tokens did not come in ten seconds"
    assert (broken.outcome, broken.text) == (CheckOutcome.BROKEN, "it was broken from 1:00 to the end")


def test_several_watches_are_named(tmp_path: Path) -> None:
    paths = [watch_of_one(tmp_path / "monday.servetop"), watch_of_one(tmp_path / "friday.servetop")]
    assert watches_named([str(tmp_path)]) == sorted(paths)
    report = check_watches(paths, ["waiting<=10"])
    assert [each.title for each in report.items] == ["waiting<=10 in monday", "waiting<=10 in friday"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "without a threshold: give one, as in --threshold 'kv_usage<90%'"),
        (("--threshold", "p42_ttft_ms<=500"), "a watch has no metric 'p42_ttft_ms'"),
        (("--baseline", "sample", "--max-regression", "p99_ttft_ms=5%"), "--baseline: "),
        (("--rule", "no-errors"), "only --threshold can be checked"),
    ],
)
def test_what_cannot_be_checked_of_a_watch_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    path = watch_of_one(tmp_path / "w.servetop")
    assert main(["check", str(path), *words]) == ExitCode.USAGE
    assert message in capsys.readouterr().err


def test_runs_and_watches_are_checked_apart(tmp_path: Path) -> None:
    path = watch_of_one(tmp_path / "w.servetop")
    with pytest.raises(UsageError, match=r"is a recorded watch, and .* is a run: check them one by one"):
        watches_named([str(path), "sample"])
    assert watches_named(["sample"]) == []
