"""A sweep over flags and models of the engine: it restarts between them, and a start that fails is a result."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop

pytestmark = pytest.mark.integration

ENGINE = Path(__file__).parent / "failing_engine.py"
BASE = "request_rate = 40\nnum_prompts = 6\nrandom_input_len = 16\nrandom_output_len = 4\n"


def outcomes(summary: dict[str, object], setting: str) -> list[tuple[object, object]]:
    stages = summary["stages"]
    assert isinstance(stages, list)
    return [(each["settings"].get(setting), each["outcome"]) for each in stages if each["counted"]]


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    return tmp_path / "grid.toml"


@pytest.mark.parametrize("workers", [1, 2])
def test_each_cell_is_measured_at_an_engine_with_its_flags_and_model(
    servetop: Servetop, grid: Path, workers: int
) -> None:
    grid.write_text(
        f"workers = {workers}\n{BASE}[grid]\nengine.args.max-model-len = [512, 15]\n"
        'model = ["opt-1.3b", "llama-2-7b"]\n'
    )
    done = servetop("sweep", str(grid), "--json")
    assert done.code == 1, done.err
    assert "the model's context has 15" in done.complaint
    flag, model = "engine.args.max-model-len", "model"
    assert sorted(outcomes(done.summary, flag), key=str) == [(15, "failed")] * 2 + [(512, "whole")] * 2
    assert {each[0] for each in outcomes(done.summary, model)} == {"opt-1.3b", "llama-2-7b"}
    (recording,) = servetop.folder.glob("*.servetop")
    reader = RecordingReader.open(recording)
    notes = [note.text for note in reader.notes() if "restarting the engine" in note.text]
    reader.close()
    assert len(notes) == 3
    assert "--max-model-len 512 · opt-1.3b → --max-model-len 512 · llama-2-7b" in notes[0]


def test_a_flag_that_the_engine_refuses_is_a_failed_start(servetop: Servetop, grid: Path) -> None:
    grid.write_text(f'model = "opt-1.3b"\n{BASE}[grid]\nengine.args.kv-blocks = ["many", 256]\n')
    done = servetop("sweep", str(grid), "--json")
    assert done.code == 3
    assert outcomes(done.summary, "engine.args.kv-blocks") == [("many", "failed"), (256, "whole")]
    assert "many" in done.summary["stages"][0]["failure"]


def test_an_engine_out_of_memory_for_some_flags_is_a_result_and_resume_measures_it(
    servetop: Servetop, grid: Path, tmp_path: Path
) -> None:
    healed = tmp_path / "healed"
    command = f"{sys.executable} {ENGINE} --healed {healed}"
    grid.write_text(
        f'engine = "vllm"\nmodel = "org/m"\nengine_command = {json.dumps(command)}\n{BASE}'
        "[[cell]]\nengine.args.no-start = 0\n[[cell]]\nengine.args.no-start = 1\n"
    )
    done = servetop("sweep", str(grid), "--json")
    assert done.code == 3
    assert "out of GPU memory" in done.complaint
    assert outcomes(done.summary, "engine.args.no-start") == [(0, "failed"), (1, "whole")]
    healed.touch()
    again = servetop("sweep", str(grid), "--json", "--resume")
    assert "1 of 2 cells left" in again.err
    assert again.code in RAN, again.err
    assert sorted(outcomes(again.summary, "engine.args.no-start"), key=str) == [(0, "whole"), (1, "whole")]


def test_a_dry_run_counts_restarts_and_a_prediction_has_the_flags(servetop: Servetop, grid: Path) -> None:
    grid.write_text(
        f'model = "opt-1.3b"\n{BASE}[grid]\nengine.args.max-model-len = [512, 15]\n[sim]\ngpu = "a100-40"\n'
    )
    assert json.loads(servetop("sweep", str(grid), "--json", "--dry-run").out)["restarts"] == 1
    cells = json.loads(servetop("predict", "--preset", str(grid), "--json").out)["cells"]
    assert ["error" in cell and bool(cell["error"]) for cell in cells] == [False, True]
