"""The documented Python entry, `servetop.api`."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path

import pytest

from servetop import api
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.errors import ExitCode, RecordingError, UsageError
from servetop.reports.comparison.compare_recordings import compare_recordings
from servetop.simulator.adapter import SERVER
from tests.judgement.brief_recordings import record_briefly

CONFIG = RunConfig(
    engine=EngineConfig(name="sim"),
    workload=WorkloadConfig(input_len=8, output_len=4),
    stages=(StageConfig(request_rate=50, num_prompts=10),),
)


def test_a_run_returns_its_summary_and_leaves_a_recording(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = api.run(CONFIG, tmp_path / "run.servetop")
    assert (result.exit_code, result.reason, result.recording) == (0, "", tmp_path / "run.servetop")
    assert result.summary.requests.completed == 10
    assert api.summary(result.recording).requests.total_output_tokens == 40
    with api.open_recording(result.recording) as recording:
        assert len(recording.requests()) == 10
        manifest = recording.reader.header.manifest
    assert manifest["engine"]["argv"][1:7] == ["-P", "-m", SERVER, "--host", "127.0.0.1", "--port"]
    assert manifest["engine"]["argv"][7] == "{port}"
    assert manifest["engine"]["executable"] == sys.executable
    assert manifest["host"]["usable_cpus"] >= 1
    assert "command_line" not in manifest, "there is none of a run from Python"
    assert capfd.readouterr() == ("", "")


def test_a_prediction_has_a_cell_for_each_stage() -> None:
    (cell,) = api.predict(CONFIG, gpu="a100-80").cells
    assert (cell.gpu, cell.request_rate) == ("a100-80", 50)
    assert cell.require_result().output_throughput > 0


def test_a_recording_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError):
        api.open_recording(tmp_path / "missing.servetop")


def test_recordings_are_compared_as_by_the_command(tmp_path: Path) -> None:
    load = StageConfig(request_rate=20.0, duration=15.0)
    names = [record_briefly(tmp_path / f"{name}.servetop", load, seed=seed) for seed, name in enumerate("abc")]
    report = api.compare(names[0], names[1:], metrics=["output_throughput"], start_spread=0.01)
    assert report == compare_recordings(
        [str(names[0]), f"{names[1]},{names[2]}"], metrics=["output_throughput"], start_spread=0.01
    )
    assert (report.a.starts, report.comparisons[0].b.starts) == (1, 2)


def test_a_recording_is_checked_as_by_the_command(tmp_path: Path) -> None:
    load = StageConfig(request_rate=20.0, duration=15.0)
    base, slower = (
        record_briefly(tmp_path / f"{name}.servetop", load, settings={"c0": cost})
        for name, cost in (("base", "0.0"), ("slower", "0.02"))
    )
    assert api.check(base, threshold=["completed>=1"]).exit_code is ExitCode.OK
    assert api.check([base], threshold=["completed<1"]).exit_code is ExitCode.THRESHOLDS
    report = api.check(slower, baseline=base, max_regression=["mean_tpot_ms=10%"], start_spread=0.0)
    assert report.exit_code is ExitCode.THRESHOLDS
    assert "mean_tpot_ms" in report.reason
    with pytest.raises(UsageError, match="--max-regression"):
        api.check(slower, baseline=base)


def test_the_examples_in_the_docstrings_are_right() -> None:
    assert doctest.testmod(api) == (0, 14)
