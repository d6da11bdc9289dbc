"""`servetop dataset` shows a file as a run would send it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.harness import CommandInProcess

TURNS = [{"from": "human", "value": "Why is the sky blue?"}, {"from": "gpt", "value": "Because of the air in it."}]


def test_a_file_is_recognised_measured_and_shown(command: CommandInProcess, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([{"conversations": TURNS}, {"conversations": TURNS[:1]}]))
    lines = command("dataset", str(path)).out.splitlines()
    assert lines[:3] == [
        "dataset          sharegpt (it may also be conversations: choose with --dataset-name)",
        "rows             1",
        "not sent         1 row of the dataset was left out: a conversation of fewer than two turns",
    ]
    assert lines[4] == f"to send it       servetop --dataset-name sharegpt --dataset-path {path}"
    assert any(line.split() == ["prompt,", "estimated", "tokens", *["5"] * 6] for line in lines)
    assert lines[-1].endswith("Why is the sky blue?")


def test_it_is_printed_as_json_too(command: CommandInProcess, tmp_path: Path) -> None:
    path = tmp_path / "prompts.csv"
    path.write_text("question;output_len\nWhy?;5\n")
    refused = command("dataset", str(path))
    assert (refused.code, "it has question, output_len" in refused.err) == (2, True)
    found = json.loads(command("dataset", str(path), "--dataset-column", "question", "--json").out)
    assert (found["dataset"], found["rows"], found["other_names"]) == ("csv", 1, [])
    assert found["examples"] == [{"line": 2, "input_tokens": 1, "output_tokens": 5, "text": "Why?"}]


def test_datasets_that_ship_with_servetop_are_known_by_name(command: CommandInProcess) -> None:
    done = command("dataset", "mtbench", "--rows", "0")
    assert done.code == 0
    assert "output lengths   160 requests have none in the file: --output-len applies" in done.out
    assert "First rows" not in done.out
    missing = command("dataset", "nowhere.json")
    assert (missing.code, missing.complaint) == (2, "nowhere.json is not a file: check --dataset-path")


def test_one_request_without_a_length_is_in_the_singular(command: CommandInProcess, tmp_path: Path) -> None:
    path = tmp_path / "prompts.csv"
    path.write_text("prompt\nWhy?\n")
    assert "output lengths   1 request has none in the file: --output-len applies" in command("dataset", str(path)).out
