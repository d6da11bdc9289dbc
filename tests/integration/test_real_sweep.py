"""A sweep over flags of a real vLLM, whose repeats have starts of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import Servetop
from tests.integration.harness import SETTINGS, Vllm

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

GRID = """
engine = "vllm"
engine_command = {command}
model = {model}
engine_args = {args}
num_prompts = 16
repeats = 2
restart = "repeats"
random_input_len = 100
random_output_len = 20

[[cell]]
request_rate = 8
engine.args.max-num-batched-tokens = 1024

[[cell]]
request_rate = 8
engine.args.no-such-flag = 3
"""


def test_a_refused_flag_is_a_failed_cell_and_the_others_are_repeated_over_starts(
    vllm: Vllm, servetop: Servetop, tmp_path: Path
) -> None:
    grid, recording = tmp_path / "grid.toml", tmp_path / "run.servetop"
    texts = {"command": vllm.api_server, "model": vllm.model, "args": list(SETTINGS)}
    grid.write_text(GRID.format(**{name: json.dumps(text) for name, text in texts.items()}))
    done = servetop("sweep", str(grid), "--json", "--record", str(recording))
    assert done.code == 3, done.err
    outcomes = [(stage["settings"], stage["repeat"], stage["outcome"]) for stage in done.summary["stages"]]
    known, unknown = {"engine.args.max-num-batched-tokens": 1024}, {"engine.args.no-such-flag": 3}
    assert sorted(outcomes, key=str) == [
        (known, 0, "whole"), (known, 1, "whole"), (unknown, 0, "failed"), (unknown, 1, "failed"),
    ]  # fmt: skip
    failed = [stage["failure"] for stage in done.summary["stages"] if stage["outcome"] == "failed"]
    assert all("--no-such-flag" in text for text in failed)
    (cell,) = done.summary["sweep"]["cells"]
    assert (cell["starts"], cell["intervals"]["output_throughput"] is None) == (2, False)
    reader = RecordingReader.open(recording)
    refused = [note for note in reader.notes() if note.source == "engine" and "did not start" in note.text]
    reader.close()
    assert len(refused) == 1  # the flag is tried once, not once a repeat
