"""Recordings of virtual runs to check, and the command on them in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from servetop.cli.main import main
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.virtual_run.virtual_run import run_virtually
from tests.judgement.recordings import write_recording
from tests.simulator.virtual_run.runs import plan_of

STAGES = tuple(StageConfig(request_rate=rate, duration=12.0) for rate in (6.0, 12.0))
WORKLOAD = WorkloadConfig(input_len=64, output_len=32)


def recorded(path: Path, *, stages: tuple[StageConfig, ...] = STAGES, **plan: Any) -> str:
    """Write a run, and return its path."""
    write_recording(run_virtually(plan_of(*stages, **{"workload": WORKLOAD} | plan)), path)
    return str(path)


class Check:
    """Runs the command, and returns its exit code, its JSON and the last line of its errors."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: str) -> tuple[int, dict[str, Any], str]:
        code = main(["check", "--json", *words])
        printed = self.capsys.readouterr()
        return code, json.loads(printed.out), (printed.err.splitlines() or [""])[-1]


def outcomes(found: dict[str, Any], kind: str = "max-regression") -> list[str]:
    """Return the outcomes of the items of a kind, in order."""
    return [item["outcome"] for item in found["items"] if item["kind"] == kind]
