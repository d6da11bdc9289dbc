"""`servetop manifest` prints what identifies a run, of any recording whose header can be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig, WorkloadConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.recordings.write.recorder import Recorder
from servetop.reports.summary.manifest_sections import manifest_lines
from tests.recordings.rows import change

HEADER = RunHeader(
    config=RunConfig(
        engine=EngineConfig(name="vllm", extra_args=("--enforce-eager",)),
        workload=WorkloadConfig(prefix_len=64),
        seed=7,
        label="base",
    ),
    anchor=ClockAnchor(origin_ns=0, wall_epoch_s=1_700_000_000.0),
    engine=EngineFacts(name="vllm", title="vLLM", version="0.10", model="m", kv_blocks_total=900),
    manifest={
        "command_line": ["servetop", "--engine", "vllm", "--label", "a b"],
        "engine": {"argv": ["vllm", "serve", "--enforce-eager"], "environment": {"VLLM_USE_V1": "1"}},
        "model": {"path": "/models/m", "revision": "abc"},
    },
)


def test_values_are_grouped_and_aligned_without_defaults() -> None:
    lines = manifest_lines(HEADER)
    assert lines[:5] == [
        "run",
        "  start                    2023-11-14 22:13:20 UTC",
        "  seed                     7",
        "  label                    base",
        "  command line             servetop --engine vllm --label 'a b'",
    ]
    assert "  environment.VLLM_USE_V1  1" in lines
    assert "  kv_blocks                900" in lines
    assert "  path                     /models/m" in lines
    assert "  prefix_len               64" in lines
    assert [line for line in lines if line.split()[0] in ("num_prefixes", "args.enforce-eager")] == []


def test_an_older_recording_has_what_its_header_has() -> None:
    lines = manifest_lines(replace(HEADER, manifest={}))
    assert "  given options  --enforce-eager" in lines
    assert "  version        0.10" in lines


def test_a_growing_recording_is_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Recorder.create(tmp_path / "run.servetop", HEADER)
    assert main(["manifest", str(tmp_path / "run.servetop"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["manifest"] == HEADER.manifest
    assert printed["keys"]["engine.args.enforce-eager"] == "true"


def test_a_damaged_header_is_an_error_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.servetop"
    Recorder.create(path, HEADER).close(RunEnd(at=1.0, exit_code=0, reason=""))
    change(path, "UPDATE run SET manifest = '[1]'")
    assert main(["manifest", str(tmp_path / "run.servetop")]) == 1
    assert "its header cannot be decoded" in capsys.readouterr().err


def test_a_watch_has_no_workload() -> None:
    lines = manifest_lines(replace(HEADER, config=replace(HEADER.config, watch=WatchConfig())))
    assert "engine" in lines
    assert "workload" not in lines
    assert not [line for line in lines if any(name in line for name in ("seed", "input_len", "workers", "timeout"))]


def test_the_json_of_a_watch_has_no_load_and_keeps_what_it_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = RunConfig(
        engine=EngineConfig(url="http://gpu7:8000"), workload=WorkloadConfig(headers={"x-team": "a"}), label="night",
        thresholds=("kv_usage<90%",), watch=WatchConfig(hold=30.0),
    )  # fmt: skip
    Recorder.create(tmp_path / "watch.servetop", replace(HEADER, config=config))
    assert main(["manifest", str(tmp_path / "watch.servetop"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["config"].keys() == {"engine", "thresholds", "label", "metadata", "watch"}
    assert (printed["config"]["label"], printed["config"]["watch"]["hold"]) == ("night", 30.0)
    assert printed["keys"]["client.headers"] == '{"x-team": "[redacted]"}'
    assert not [key for key in printed["keys"] if key.startswith(("workload", "seed"))]
