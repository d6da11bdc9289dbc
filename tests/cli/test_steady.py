"""Cool-downs and steady windows, from the option to the table."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.summary.summary_types import StageSummary
from servetop.cli.configuration.sweep_file import read_sweep
from servetop.cli.configuration.sweep_plan import sweep_config
from servetop.cli.report.stage_tables import steady_mark, steady_seconds
from servetop.core.errors import UsageError
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary_lines import steady_lines, unsteady_sentences
from tests.cli.summaries import NO_STEADY, stage
from tests.harness import Servetop

pytestmark = pytest.mark.integration

BRIEF = ("--request-rate", "20", "--duration", "1.5", "--input-len", "8", "--output-len", "4")


def test_a_cooldown_is_sent_and_recorded_but_excluded_from_totals(servetop: Servetop) -> None:
    done = servetop("--json", *BRIEF, "--arrivals", "constant", "--cooldown", "525ms")
    summary = done.summary
    assert summary["cooldown_requests"] == 11  # 20 a second, none of them due at its very beginning
    (path,) = servetop.folder.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert reader.request_count() == summary["num_prompts"] + 11
        assert reader.header.config.cooldown == 0.525
        reason = reader.steady[0].reason
    whole_ticks = ("0.5", "0.75", "1")  # of 1 s, by when in a tick the load began and its last answer ended
    assert reason in [f"the load lasted {each} s: at least 10 s are needed" for each in whole_ticks]
    assert summary["steady"]["reason"] == reason
    assert f"steady     none: {reason}" in servetop("summary", "latest").out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--cooldown", "soon", *BRIEF), "--cooldown: 'soon' is not a duration"),
        (("--cooldown", "-1", *BRIEF), "--cooldown: '-1' is not a duration"),
        (("--cooldown", "2", *BRIEF), "--cooldown 2 s leaves nothing of a stage of 1.5 s"),
        (("--cooldown", "1", "--num-prompts", "4"), "--cooldown needs a rate"),
    ],
)
def test_an_invalid_cooldown_is_an_error(servetop: Servetop, words: tuple[str, ...], complaint: str) -> None:
    done = servetop("--headless", *words)
    assert done.code == 2, done.err
    assert complaint in done.complaint


def test_the_cooldown_of_a_sweep_file_applies_to_every_cell(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text('request_rate = [8, 16]\nduration = "30s"\ncooldown = "5s"')
    assert sweep_config(read_sweep(str(file))).cooldown == 5.0
    file.write_text('request_rate = [8, 16]\nduration = "30s"\ncooldown = 30')
    with pytest.raises(UsageError, match="--cooldown 30 s leaves nothing of a stage of 30 s"):
        sweep_config(read_sweep(str(file)))


def steady(label: str, *, seconds: float | None = None, reason: str | None = None) -> StageSummary:
    start = None if reason else 0.0
    return stage(label, steady=replace(NO_STEADY, start=start, end=seconds, seconds=seconds, reason=reason))


def test_tables_mark_unsteady_stages_and_lines_give_the_reason() -> None:
    found, ramp = steady("8 req/s", seconds=17.25), steady("8 to 16 req/s", reason="ramped")
    assert (steady_seconds(found.steady), steady_seconds(ramp.steady)) == ("17.2", "–")
    assert [steady_mark(each) for each in ([found.steady], [found.steady, ramp.steady], [])] == ["", " ~", ""]
    assert steady_lines([ramp]) == ["steady     none: ramped"]
    assert steady_lines([found, ramp]) == ["steady     none in 8 to 16 req/s: ramped"]
    many = [steady(f"{rate} req/s", reason="short") for rate in (1, 2, 3)]
    assert steady_lines([*many, ramp]) == [
        "steady     none in 1 req/s and 2 more: short",
        "steady     none in 8 to 16 req/s: ramped",
    ]
    assert steady_lines([found]) == []
    assert steady_lines([found, replace(ramp, failure="the engine did not start")]) == []


def test_sentences_name_the_stages_of_a_run_with_several() -> None:
    found, ramp = steady("8 req/s", seconds=17.25), steady("8 to 16 req/s", reason="ramped")
    assert unsteady_sentences([ramp]) == ["no steady state: ramped"]
    assert unsteady_sentences([found, ramp]) == ["no steady state in 8 to 16 req/s: ramped"]
    assert unsteady_sentences([found]) == []


def test_requests_in_flight_at_the_end_are_cancelled_after_the_drain_timeout(servetop: Servetop) -> None:
    long = ("--request-rate", "20", "--duration", "1", "--input-len", "8", "--output-len", "2000")
    done = servetop("--json", *long, "--drain-timeout", "0")
    assert done.summary["completed"] == 0
    assert done.summary["cancelled"] > 0
    (path,) = servetop.folder.glob("*.servetop")
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert reader.header.config.drain_timeout == 0
