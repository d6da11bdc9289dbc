"""The documented Python entry, `servetop.api`."""

from __future__ import annotations

import contextlib
import math
import sys
from pathlib import Path

import pytest

from servetop import api
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.errors import RecordingError
from servetop.simulator.adapter import SERVER

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
    with contextlib.closing(api.open_recording(result.recording)) as reader:
        assert len(reader.requests(0.0, math.inf)) == 10
        manifest = reader.header.manifest
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
