"""What a sweep would do: its cells, the restarts of its engine, and how long it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from servetop.cli.main import main
from servetop.cli.report.sweep_dry_run import PLANNED, PREDICTED, UNKNOWN, cell_times, restarts
from servetop.core.config import EngineConfig, RunConfig, StageConfig
from servetop.core.config_values.planned_seconds import planned_seconds


@pytest.mark.parametrize(
    ("stage", "seconds"),
    [
        (StageConfig(request_rate=4.0, duration=30.0), 30.0),
        (StageConfig(request_rate=4.0, num_prompts=40), 10.0),
        (StageConfig(request_rate=4.0, num_prompts=400, duration=30.0), 30.0),
        (StageConfig(max_concurrency=8, num_prompts=40), None),
        (StageConfig(max_concurrency=8, num_prompts=40, duration=30.0), 30.0),
    ],
)
def test_a_cell_lasts_until_its_last_request_is_due(stage: StageConfig, seconds: float | None) -> None:
    assert planned_seconds(stage) == seconds


def test_a_prediction_comes_before_the_plan_and_warm_ups_are_left_out() -> None:
    stages = [
        StageConfig(num_prompts=8, max_concurrency=8, warmup=True),
        StageConfig(request_rate=4.0, num_prompts=40),
        StageConfig(request_rate=4.0, num_prompts=40, repeat=1),
        StageConfig(num_prompts=40),
    ]
    times = cell_times(RunConfig(stages=tuple(stages)), {(stages[2].label, 1): 12.5})
    assert [(each.seconds, each.basis) for each in times] == [(10.0, PLANNED), (12.5, PREDICTED), (None, UNKNOWN)]


@pytest.mark.parametrize(
    ("engine", "count"),
    [
        (EngineConfig(name="vllm"), 2),
        (EngineConfig(name="sim"), 0),
        (EngineConfig(name="vllm", url="http://gpu7:8000"), 0),
    ],
)
def test_a_started_engine_restarts_where_its_batch_size_changes(engine: EngineConfig, count: int) -> None:
    stages = tuple(StageConfig(max_num_seqs=batch, num_prompts=1) for batch in (4, 4, 8, 4))
    assert sum(restarts(RunConfig(engine=engine, stages=stages))) == count


def test_restarts_between_repeats_are_before_the_first_cell_of_each_with_its_warm_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "engine = 'sim'\nrequest_rate = [4, 8]\nduration = '5s'\nrepeats = 3\nnum_warmups = 2\n"
    found = dry_run(tmp_path, capsys, f"restart = 'repeats'\n{text}")
    cells = [(cell["request_rate"], cell["repeat"], cell["restart"]) for cell in found["cells"]]
    assert cells == [(4, 0, False), (8, 0, False), (4, 1, True), (8, 1, False), (4, 2, True), (8, 2, False)]
    assert found["restarts"] == 2
    assert dry_run(tmp_path, capsys, text)["restarts"] == 0


def test_the_table_says_before_which_cells_the_engine_restarts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "grid.toml"
    file.write_text("engine = 'vllm'\nrequest_rate = [4]\nduration = '5s'\nrepeats = 2\nrestart = 'repeats'\n")
    assert main(["sweep", str(file), "--dry-run"]) == 0
    rows = [row for row in capsys.readouterr().out.splitlines() if row.startswith("4 req/s")]
    assert ["after a restart" in row for row in rows] == [False, True]


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ("url = 'http://gpu7:8000'\nrepeats = 2", "servetop does not restart a server at a URL: leave out restart"),
        ("repeats = 1", "restart = 'repeats' needs repeats = 2 or more"),
        ("repeats = 2\n[grid]\nrestart = ['repeats']", "restart has one value in a sweep"),
    ],
)
def test_restarts_that_cannot_be_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, complaint: str
) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(f"request_rate = [4]\nduration = '5s'\nrestart = 'repeats'\n{more}\n")
    assert main(["sweep", str(file), "--dry-run"]) == 2
    printed = capsys.readouterr().err.strip()
    assert complaint in printed
    assert "\n" not in printed


def test_another_value_of_restart_is_refused_with_the_one_that_exists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "grid.toml"
    file.write_text("request_rate = [4]\nduration = '5s'\nrepeats = 2\nrestart = 'cells'\n")
    assert main(["sweep", str(file), "--dry-run"]) == 2
    assert "restart = 'cells': use 'repeats'" in capsys.readouterr().err


def dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> dict[str, Any]:
    file = tmp_path / "grid.toml"
    file.write_text(text)
    assert main(["sweep", str(file), "--dry-run", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


GRID = "max_num_seqs = [4, 8]\nrequest_rate = [4]\nduration = '5s'\n[grid]\ninput_len = [16, 64]\n"


def test_the_object_has_all_cells_in_their_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = dry_run(tmp_path, capsys, f"engine = 'vllm'\n{GRID}")
    cells = [(cell["max_num_seqs"], cell["settings"], cell["seconds"], cell["basis"]) for cell in found["cells"]]
    assert cells == [(batch, {"input_len": size}, 5.0, PLANNED) for batch in (4, 8) for size in (16, 64)]
    assert (found["restarts"], found["seconds"], found["cells_of_unknown_length"]) == (1, 20.0, 0)


def test_a_described_machine_predicts_cells_whose_length_depends_on_the_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "max_concurrency = [2, 4]\nnum_prompts = 20\nmodel = 'opt-1.3b'\n"
    unknown = dry_run(tmp_path, capsys, text)
    assert (unknown["cells_of_unknown_length"], unknown["seconds"]) == (2, 0.0)
    two, four = dry_run(tmp_path, capsys, f"{text}[sim]\ngpu = 'a100-40'\n")["cells"]
    assert two["basis"] == four["basis"] == PREDICTED
    assert two["seconds"] > four["seconds"] > 0


def test_the_text_sums_up_and_nothing_is_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(f"engine = 'vllm'\nrepeats = 2\n{GRID}")
    assert main(["sweep", str(file), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "8 cells, in this order" in out
    assert "4 req/s · batch 4 · in 16 #2" in out
    assert "restarts   1" in out
    assert "time       0:40 of load: 8 planned (0:40); starts of the engine add to it" in out
