"""The lines of a watch without a dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from servetop.analysis.live_stats import Rates, Totals
from servetop.cli.watch.watch_progress import WatchProgress, state_line
from servetop.core.clock import ClockAnchor
from servetop.core.events import EngineSample, Note, Severity
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import LoadGauges, Tick
from servetop.engines.metrics.spec_builders import gauge_of
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.tui.state.engine_page import EnginePage, MetricGroup, MetricLine
from tests.analysis.test_verdict_now import SAMPLE, stats_of
from tests.analysis.test_watched_signals import FACTS, ticks
from tests.reports.summary.test_watch_summary import CONFIG
from tests.watched_pages import paged_ticks

EXPORTED = Rates(engine_output_tokens=1234.0, preemptions=0.5, prefix_cache_hit_rate=0.4)


def test_the_state_is_that_of_the_engine_and_leaves_out_what_it_does_not_export() -> None:
    given = {"load": LoadGauges(), "totals": Totals()}
    assert state_line(stats_of(EXPORTED, **given), EnginePage()) == (
        "1:00  engine │ out 1,234 tok/s │ running 80 │ waiting 0 │ KV 50.0 % │ preemptions 0.5/s │ cache hits 40.0 %"
    )
    bare = replace(SAMPLE, waiting=None, kv_usage=None)
    assert state_line(stats_of(Rates(), engine=bare, **given), EnginePage()) == "1:00  engine │ running 80"


def test_failed_requests_are_said_if_there_are_any() -> None:
    given = {"load": LoadGauges(), "totals": Totals(), "engine": replace(SAMPLE, waiting=None, kv_usage=None)}
    line = state_line(stats_of(Rates(engine_failed_share=0.25), **given), EnginePage())
    assert line == "1:00  engine │ running 80 │ failed 25.0 %"
    assert "failed" not in state_line(stats_of(Rates(engine_failed_share=0.0), **given), EnginePage())


@pytest.mark.parametrize(
    ("sample", "shown"), [(None, "no metrics"), (replace(SAMPLE, scrape_end=48.0), "no metrics since 0:48")]
)
def test_a_silent_server_has_no_old_figures(sample: object, shown: str) -> None:
    stats = stats_of(EXPORTED, engine=sample, load=LoadGauges(), totals=Totals())
    assert state_line(stats, EnginePage()) == f"1:00  engine │ {shown}"


def test_a_server_without_known_metrics_answers_and_shows_what_it_exports() -> None:
    answer = EngineSample(scrape_start=59.5, scrape_end=59.503)
    stats = stats_of(Rates(), engine=answer, load=LoadGauges(), totals=Totals())
    plain = state_line(stats, EnginePage(), answers_since=2.0)
    assert plain == "1:00  engine │ answers in 3.00 ms since 0:02 │ no metrics"
    line = MetricLine(
        spec=gauge_of("Gauges", "acme_running gpu:", "acme_running", by="gpu"), label="0", source="acme_running",
        value=3.0, p90=None, at_most=0.0, bucket=None, trend=np.empty(0),
    )  # fmt: skip
    page = EnginePage(groups=(MetricGroup(title="Gauges", lines=(line, replace(line, value=0.0))),))
    assert state_line(stats, page, answers_since=2.0) == (
        "1:00  engine │ answers in 3.00 ms since 0:02 │ acme_running gpu: 0 = 3"
    )


def test_a_server_whose_page_takes_long_has_its_figures_until_the_next_reading() -> None:
    sample = replace(SAMPLE, scrape_end=58.0)
    stats = replace(stats_of(EXPORTED, engine=sample, load=LoadGauges(), totals=Totals()), sample_interval=1.75)
    assert "running 80" in state_line(stats, EnginePage())


def test_a_line_is_printed_when_the_verdict_changes_or_the_server_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder.create(tmp_path / "watch.servetop", RunHeader(config=CONFIG, anchor=ClockAnchor.take()))
    recorder.set_engine(FACTS)
    progress = WatchProgress(tmp_path / "watch.servetop")
    gone = Note(at=45.0, severity=Severity.WARNING, source="engine", text="it stopped responding")
    for tick in ticks(waiting=30.0):
        recorder.commit(TickTransaction(tick=tick, notes=[gone] if tick.end == gone.at else []))
        progress.show()
    progress.close()
    lines = [line for line in capsys.readouterr().err.splitlines() if "engine │" not in line]
    assert "0:45  warning: engine: it stopped responding" in lines
    verdicts = [line.partition("  ")[2].partition(":")[0] for line in lines if "warning" not in line]
    assert verdicts == ["serving", "batch-bound", "serving"], lines


def lines_of(folder: Path, capsys: pytest.CaptureFixture[str], recorded: Sequence[Tick]) -> list[str]:
    """The lines that a watch prints for these ticks."""
    recorder = Recorder.create(folder / "watch.servetop", RunHeader(config=CONFIG, anchor=ClockAnchor.take()))
    recorder.set_engine(FACTS)
    progress = WatchProgress(folder / "watch.servetop")
    for tick in recorded:
        recorder.commit(TickTransaction(tick=tick))
        progress.show()
    progress.close()
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(("every", "seconds"), [(15.0, 60.0), (60.0, 200.0)])
def test_a_source_with_rare_metrics_has_the_figures_of_its_interval(
    every: float, seconds: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = lines_of(tmp_path, capsys, paged_ticks(every=every, seconds=seconds))
    assert not [line for line in lines if "no metrics" in line and not line.startswith("0:00")]
    figures = [line.split(" │ ")[1] for line in lines if "engine │" in line]
    assert {each for each in figures if each.startswith("out")} == {"out 520 tok/s"}
    assert sum(f"metrics every {every:.0f} s" in line for line in lines) == 0
    assert len([line for line in lines if "serving" in line]) == 1


def test_the_first_lines_of_a_watch_have_the_rate_of_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = lines_of(tmp_path, capsys, paged_ticks(every=1.0, seconds=25.0, first=8.0))
    outs = [line.split(" │ ")[1] for line in lines if "engine │" in line and "no metrics" not in line]
    assert outs == ["out 520 tok/s"] * 2
