"""`servetop rerun` repeats a run, or says in one line each what is missing."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from tests.harness import RAN, Servetop

HEADER = RunHeader(
    config=RunConfig(engine=EngineConfig(name="sim"), stages=(StageConfig(num_prompts=5),)),
    anchor=ClockAnchor(origin_ns=0, wall_epoch_s=1.7e9),
    engine=EngineFacts(name="sim", title="simulator", version="vllm-0.2.1", model="llama-2-7b"),
)


def recorded(path: Path, header: RunHeader = HEADER) -> str:
    Recorder.create(path, header).close(RunEnd(at=1.0, exit_code=0, reason=""))
    return str(path)


def test_a_dry_run_prints_command_lines_and_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = {"command_line": ["servetop", "--num-prompts", "5"]}
    file = recorded(tmp_path / "base.servetop", replace(HEADER, manifest=manifest, host={"name": "elsewhere"}))
    assert main(["rerun", file, "--dry-run", "--seed", "4"]) == 0
    out = capsys.readouterr().out
    assert "recorded as  servetop --num-prompts 5\n" in out
    assert "servetop.cli.serve_process --host 127.0.0.1 --port '{port}' --model llama-2-7b\n" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["seed", "0", "→", "4"] in lines
    assert "refused" not in out


@pytest.mark.usefixtures("without_processor_settings")
def test_every_missing_thing_is_a_line_and_the_exit_code_is_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    workload = WorkloadConfig(headers={"X-Api-Key": "plantedkey77"}, dataset="sharegpt", dataset_path="/no/such.json")
    manifest = {"engine": {"argv": ["python"], "environment": {"VLLM_USE_V1": "1"}}}
    header = replace(HEADER, config=replace(HEADER.config, workload=workload), manifest=manifest)
    file = recorded(tmp_path / "base.servetop", header)
    assert main(["rerun", file, "--headless", "--anyway"]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert printed == [
        "  /no/such.json is not a file: check --dataset-path",
        "  the recording does not contain the secret value of workload.headers.X-Api-Key: give it again",
        "servetop: base cannot be repeated here, for the 2 reasons above",
    ]
    assert main(["rerun", file, "--dry-run", "--json"]) == 2
    refused = json.loads(capsys.readouterr().out)["refused"]
    assert refused[2:] == ["VLLM_USE_V1 was 1 and is not set: export it", "OMP_NUM_THREADS is 3, was not set: unset it"]


@pytest.mark.usefixtures("without_processor_settings")
def test_a_single_reason_is_the_error_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = {"engine": {"argv": ["python"], "environment": {"VLLM_USE_V1": "1"}}}
    file = recorded(tmp_path / "base.servetop", replace(HEADER, manifest=manifest))
    assert main(["rerun", file, "--headless", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error == (
        "base cannot be repeated here: VLLM_USE_V1 was 1 and is not set: export it (--anyway repeats it nevertheless)"
    )


def requests_of(path: Path) -> list[tuple[float, int | None, str | None]]:
    """Due time, prompt length and prompt of every request."""
    with contextlib.closing(RecordingReader.open(path)) as reader:
        found = reader.requests(0.0, math.inf)
        start = min(each.due for each in found)
        return [(round(each.due - start, 6), each.prompt_tokens, each.prompt_text) for each in found]


@pytest.mark.integration
def test_a_repeated_run_sends_the_same_requests_and_names_the_first(tmp_path: Path, servetop: Servetop) -> None:
    first, second, third = (tmp_path / f"{name}.servetop" for name in ("first", "second", "third"))
    load = "--headless --rate 40 --num-prompts 30 --input-len 20 --output-len 4 --random-range-ratio 0.5 --store-texts"
    ran = servetop(*load.split(), "--seed", "7", "--record", str(first), "--", "--kv-blocks", "700")
    assert ran.code in RAN, ran.err
    again = servetop("rerun", str(first), "--headless", "--record", str(second))
    assert again.code in RAN, again.err
    assert requests_of(first) == requests_of(second)
    assert len(requests_of(first)) == 30
    with contextlib.closing(RecordingReader.open(second)) as reader:
        assert reader.header.config.metadata == {"repeats": "first"}
        assert reader.header.config.engine.extra_args == ("--kv-blocks", "700")
        assert reader.header.manifest["command_line"][:2] == ["servetop", "rerun"]
    other = servetop("rerun", str(first), "--headless", "--record", str(third), "--seed", "8")
    assert other.code in RAN, other.err
    assert requests_of(third) != requests_of(first)
