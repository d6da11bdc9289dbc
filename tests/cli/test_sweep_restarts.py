"""A sweep whose repeats have starts of the engine of their own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop, opened, wait_for

pytestmark = pytest.mark.integration

ENGINE = Path(__file__).parent / "failing_engine.py"
GRID = """
model = "opt-1.3b"
request_rate = [20, 40]
num_prompts = 12
num_warmups = 2
repeats = 3
restart = "repeats"
random_input_len = 16
random_output_len = 4
"""
SECOND_START_FAILS = """#!/bin/sh
echo start >> {starts}
[ "$(wc -l < {starts})" -eq 2 ] && { echo "ValueError: no room for the second start" >&2; exit 1; }
exec {python} {engine} "$@"
"""


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def restart_notes(recording: Path) -> list[str]:
    reader = RecordingReader.open(recording)
    try:
        return [note.text for note in reader.notes() if note.text.endswith("restarting the engine")]
    finally:
        reader.close()


def cells_of(summary: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = summary["sweep"]["cells"]
    return found


def test_each_repeat_of_one_engine_has_a_start_with_a_warm_up_and_cells_have_intervals(
    servetop: Servetop, grid: Path
) -> None:
    done = servetop("sweep", str(grid), "--json")
    assert done.code in RAN, done.err
    assert [(cell["starts"], cell["intervals"] is None) for cell in cells_of(done.summary)] == [(3, False)] * 2
    (recording,) = servetop.folder.glob("*.servetop")
    assert restart_notes(recording) == [f"repeat {each} → {each + 1}: restarting the engine" for each in (1, 2)]
    reader = RecordingReader.open(recording)
    order = [(stage.repeat, stage.warmup) for stage in reader.stages()]
    reader.close()
    assert order == [(repeat, warmup) for repeat in range(3) for warmup in (True, False, False)]
    again = servetop("sweep", str(grid), "--resume")
    assert "nothing to resume" in again.err


def test_a_killed_one_is_resumed_with_as_many_starts(servetop: Servetop, grid: Path, tmp_path: Path) -> None:
    recording = tmp_path / "killed.servetop"
    with servetop.started("sweep", str(grid), "--headless", "--record", str(recording)) as process:
        wait_for(lambda: _stages(recording) >= 5 or process.poll() is not None, seconds=60, what="the second repeat")
        process.kill()
        process.communicate(timeout=60)
    done = servetop("sweep", str(grid), "--json", "--resume", "--record", str(recording))
    assert done.code in RAN, done.err
    assert [cell["starts"] for cell in cells_of(done.summary)] == [3, 3]
    whole = [stage for stage in done.summary["stages"] if stage["counted"] and not stage["label"].startswith("warm-up")]
    assert sorted((stage["request_rate"], stage["repeat"]) for stage in whole) == [
        (rate, repeat) for rate in (20.0, 40.0) for repeat in range(3)
    ]


def test_a_repeat_whose_start_fails_is_a_failed_one_and_the_next_repeat_is_started(
    servetop: Servetop, grid: Path, tmp_path: Path
) -> None:
    engine = tmp_path / "engine.sh"
    texts = {"{starts}": str(tmp_path / "starts"), "{python}": sys.executable, "{engine}": str(ENGINE)}
    script = SECOND_START_FAILS
    for name, text in texts.items():
        script = script.replace(name, text)
    engine.write_text(script)
    command = json.dumps(f"sh {engine}")
    grid.write_text(GRID.replace("opt-1.3b", "org/m") + f'engine = "vllm"\nengine_command = {command}\n')
    done = servetop("sweep", str(grid), "--json")
    assert done.code == 3, done.err
    assert "no room for the second start" in done.complaint
    outcomes = [
        (stage["repeat"], stage["outcome"])
        for stage in done.summary["stages"]
        if not stage["label"].startswith("warm-up")
    ]
    assert sorted(outcomes) == [(0, "whole")] * 2 + [(1, "failed")] * 2 + [(2, "whole")] * 2


def _stages(recording: Path) -> int:
    reader = opened(recording)
    if reader is None:
        return 0
    try:
        return len(reader.stages())
    finally:
        reader.close()
