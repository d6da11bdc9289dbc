"""The command that would answer what two recordings leave open, and the time it takes."""

from __future__ import annotations

from dataclasses import replace

from servetop.analysis.comparison.report_types import ComparedStage, RunPairsAdvice
from servetop.analysis.manifest.manifest_diff import manifest_differences
from servetop.core.config import StageConfig
from servetop.reports.comparison.measured_arm import MeasuredRun
from servetop.reports.comparison.run_pairs_advice import run_pairs_advice, time_text
from tests.analysis.comparison_values import stage, value
from tests.analysis.measured_arms import CONFIG, run

SHORT = stage(value("p50_ttft_ms", "cannot tell", reason="too short"))
CLEAR = stage(value("p50_ttft_ms", "worse"), value("p90_ttft_ms", "cannot tell", more_seconds=780.0))


def advice_of(a: MeasuredRun, b: MeasuredRun, *stages: ComparedStage) -> RunPairsAdvice | None:
    return run_pairs_advice(a, b, stages, manifest_differences(a.header, b.header))


def advised(seconds: float) -> RunPairsAdvice:
    found = advice_of(run("a", seconds=seconds), run("b", seconds=seconds), SHORT)
    assert found is not None
    return found


def test_two_short_recordings_are_the_configurations_of_a_series_of_three_to_eight_pairs() -> None:
    assert advised(17.0) == RunPairsAdvice(
        command="servetop run-pairs runs/a.servetop runs/b.servetop",
        pairs_low=3,
        pairs_high=8,
        seconds_low=3 * 2 * 20.0,
        seconds_high=8 * 2 * 20.0,
    )
    assert [time_text(advised(seconds)) for seconds in (1.0, 17.0, 597.0)] == [
        "about 1 to 2 min", "about 2 to 6 min", "about 60 min to 2 h 40 min",
    ]  # fmt: skip


def test_a_series_that_takes_longer_than_the_usual_budget_is_given_one() -> None:
    assert advised(597.0).command.endswith(" --budget 3h")


def test_there_is_no_advice_where_longer_runs_of_minutes_would_tell() -> None:
    assert advice_of(run("a"), run("b"), CLEAR) is None


def test_hours_of_measuring_are_a_reason_for_pairs() -> None:
    hours = stage(value("p90_ttft_ms", "cannot tell", more_than="4 h"))
    assert advice_of(run("a"), run("b"), CLEAR, hours) is not None


def test_runs_of_other_loads_cannot_be_paired_but_other_batch_sizes_can() -> None:
    loads = (
        StageConfig(request_rate=8.0, duration=60.0, max_num_seqs=64),
        StageConfig(request_rate=9.0, duration=60.0),
    )
    batch, other = (run("b", replace(CONFIG, stages=(load,))) for load in loads)
    assert advice_of(run("a"), batch, SHORT) is not None
    assert advice_of(run("a"), other, SHORT) is None


def test_runs_of_other_workloads_cannot_be_paired() -> None:
    longer = replace(CONFIG, workload=replace(CONFIG.workload, input_len=512))
    assert advice_of(run("a"), run("b", longer), SHORT) is None
