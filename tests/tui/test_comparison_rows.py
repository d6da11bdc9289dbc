"""The comparison screen: rows from a comparison, and how they are drawn."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from servetop.analysis.comparison.comparison import Comparison
from servetop.analysis.comparison.undecided import UndecidedReason
from servetop.analysis.comparison.verdicts import Verdict
from servetop.analysis.manifest.manifest_diff import DifferenceKind, ManifestDifference
from servetop.core.errors import RecordingError
from servetop.core.interfaces.run_source import RunSource
from servetop.reports.comparison.comparison_text import verdict_text
from servetop.tui.app import DashboardApp
from servetop.tui.drawing.text_runs import Lines, row_width
from servetop.tui.options import DashboardOptions
from servetop.tui.panels.detail.changes import draw_changes
from servetop.tui.panels.detail.comparison import comparison_rows, heading, metric_row
from servetop.tui.panels.panel import Panel
from servetop.tui.state.comparison_rows import comparison_table
from servetop.tui.state.comparison_table import ComparisonRow
from tests.tui.canned_comparison import LOSS, TAIL, compared, comparison, varied

TABLE = comparison_table(varied(), baseline="main", run="new")


def rows() -> dict[str, ComparisonRow]:
    return {row.metric: row for stage in TABLE.stages for row in stage.rows}


def test_a_row_has_both_values_the_difference_and_the_interval() -> None:
    row = rows()["output tokens"]
    assert (row.baseline, row.run, row.difference, row.verdict) == ("1,000", "900", "−10.0 %", Verdict.WORSE)
    assert row.interval.startswith("−11.")
    assert row.interval.endswith(" to −8.1 %")


def test_values_have_the_units_of_their_metric_and_notes_what_would_tell() -> None:
    latency, usage, unknown = (rows()[name] for name in ("TTFT p99", "KV usage", "goodput"))
    assert (latency.baseline, latency.run, latency.difference) == ("20.0 ms", "2.30 s", "×115")
    assert latency.note == "3 more starts"
    assert (usage.baseline, usage.difference) == ("50.0 %", "+2.0 pt")
    assert (unknown.run, unknown.interval, unknown.note) == ("–", "", "not measured in the run")


def test_an_undecided_metric_has_the_words_of_the_command_line() -> None:
    tail = compared("p99_ttft_ms", TAIL, Verdict.CANNOT_TELL, more_seconds=780.0, reason=UndecidedReason.TOO_FEW_VALUES)
    table = comparison_table(comparison(tail), baseline="main", run="new")
    (row,) = table.stages[0].rows
    assert (row.note, row.brief) == ("too few values, 13 min more", "too few values")
    assert verdict_text(tail) == f"? cannot tell: {row.note}"
    assert verdict_text(tail, short=True) == f"? {row.brief}"
    assert "? too few values" in Lines([metric_row(row, 76)]).plain
    assert row.note in Lines([metric_row(row, 116)]).plain


def test_an_interval_without_an_end_is_not_shown() -> None:
    endless = replace(LOSS, low_error=50.0, high_error=50.0, df=1.0)
    found = comparison(compared("output_throughput", endless, Verdict.CANNOT_TELL))
    table = comparison_table(found, baseline="", run="")
    assert table.stages[0].rows[0].interval == ""


def test_loads_of_one_run_only_and_stages_that_are_not_steady_are_named() -> None:
    assert TABLE.unmatched == ("only in main: 4 req/s", "only in new: 9 req/s")
    assert TABLE.stages[0].extent == "15 and 14 s · 120 and 1,118 requests · not steady: the load lasted 15 s"
    empty = comparison_table(replace(comparison(), stages=()), baseline="main", run="new")
    assert "no stage" in empty.note


def test_a_table_counts_its_verdicts() -> None:
    assert [TABLE.count(each) for each in Verdict] == [1, 1, 1, 2]


@pytest.mark.parametrize("width", [56, 76, 116, 216])
def test_columns_are_at_the_same_place_in_all_rows_and_never_wider_than_the_panel(width: int) -> None:
    drawn = [Lines([metric_row(row, width)]).plain for row in rows().values()]
    title = Lines([heading("new", "main", width)]).plain
    assert all(row_width([(line, "")]) <= width for line in (*drawn, title))
    if width >= 76:
        place = title.index("verdict")
        assert {line[place : place + 1] for line in drawn} <= {"▲", "▼", "=", "?"}
        assert all(line[place - 2 : place] == "  " for line in drawn)


def test_the_result_and_other_causes_come_first_then_stages_as_headings_and_unmatched_loads_last() -> None:
    headline, *lines = Lines(comparison_rows(TABLE, 116)).plain.split("\n")
    assert headline.startswith("The run is worse: output tokens −10 %")
    assert lines[0].startswith(
        "▲ other cause: cache: the prefix cache had 58% of the first 14,000 prompt tokens in the"
    )
    assert lines[2].startswith("8 req/s  15 and 14 s")
    assert lines[-1].startswith("only in new: 9 req/s")


def test_as_many_changed_keys_as_fit_are_shown_then_their_number() -> None:
    setting, model = DifferenceKind.SETTING, DifferenceKind.WORKLOAD
    changes = [ManifestDifference(key=f"engine.key{each}", kind=setting, a=None, b="a") for each in range(4)]
    changes.append(ManifestDifference(key="model.name", kind=model, a="llama", b="mistral"))
    rows = draw_changes(changes, 40, 9)
    assert Lines(rows).plain.split("\n")[3:] == ["engine.key3  not recorded → a", "model.name   llama → mistral"]
    assert [row[0][1] for row in rows[3:]] == ["muted", "bad"]
    assert Lines(draw_changes(changes, 40, 3)).plain.split("\n")[2] == "and 3 more"


def text(app: DashboardApp, selector: str) -> str:
    """The rows of a panel of the top screen."""
    return app.screen.query_one(selector, Panel).render().plain


@contextlib.contextmanager
def source(run: RunSource) -> Iterator[RunSource]:
    yield run


async def test_the_comparison_is_made_in_the_background_once_for_a_finished_run(
    canned: ModuleType, dashboard: Callable[..., DashboardApp], tmp_path: Path
) -> None:
    asked: list[Path] = []

    def compare(path: Path) -> Comparison:
        asked.append(path)
        if path.stem == "broken":
            raise RecordingError("broken.servetop is damaged")
        return comparison(compared("output_throughput", LOSS, Verdict.WORSE))

    path = tmp_path / "run.servetop"
    options = DashboardOptions(baseline=lambda: source(canned.finished()), compare=compare, recording=path)
    app = dashboard(canned.finished(), options=options)
    async with app.run_test(size=(80, 24)) as pilot:
        while not app.viewer.comparison.stages:
            await pilot.pause(0.01)
        assert text(app, "#keys").startswith("9 compare")
        await pilot.press("9")
        assert "▼ worse" in text(app, "#comparison")
        assert "▸9 Comp" in text(app, "#tabs")
    assert asked == [path]


async def test_without_a_baseline_the_screen_says_how_to_get_one(
    canned: ModuleType, dashboard: Callable[..., DashboardApp]
) -> None:
    app = dashboard(canned.finished())
    async with app.run_test(size=(80, 24)) as pilot:
        assert "9 compare" not in text(app, "#keys")
        await pilot.press("9")
        assert "--against BASELINE" in text(app, "#comparison")
