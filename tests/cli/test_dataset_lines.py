"""The summary names the dataset of a run, on the terminal and as JSON."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from tests.harness import Servetop

QUICK = ("--engine", "sim", "--headless", "--request-rate", "inf", "--output-len", "2", "--max-concurrency", "4")
NOTHING = {"rows_used": None, "rows_skipped": None, "rows_left_out": None, "random_tokens": None}


def test_rows_of_a_file_are_counted_as_used_and_skipped(servetop: Servetop, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [json.dumps({"prompt": f"Question {number}?"}) for number in range(3)]
    path.write_text("\n".join(rows))
    words = (*QUICK, "--dataset-name", "custom", "--dataset-path", str(path), "--skip-bad-rows")
    done = servetop(*words, "--num-prompts", "2")
    assert "dataset    custom, mine.jsonl · 2 rows used\n" in done.out
    path.write_text("\n".join([*rows, '{"prompt": 7}']))
    again = servetop(*words, "--num-prompts", "5", "--json")
    counts = {"rows_used": 3, "rows_skipped": 1, "rows_left_out": 0, "random_tokens": None}
    assert again.summary["dataset"] == {"name": "custom", "file": "mine.jsonl", **counts}


def test_random_prompts_say_whether_they_are_ordinary_tokens(servetop: Servetop) -> None:
    done = servetop(*QUICK, "--num-prompts", "2", "--json")
    assert done.summary["dataset"] == {"name": "random", "file": None, **NOTHING, "random_tokens": "ordinary"}
    with contextlib.closing(RecordingReader.open(resolve("latest", folder=servetop.folder))) as reader:
        assert (reader.header.random_tokens, reader.notes()) == ("ordinary", [])  # what every run has is no event
    assert "dataset    random · ordinary tokens of the model\n" in servetop("summary", "latest").out
    chat = servetop(*QUICK, "--num-prompts", "2", "--endpoint", "chat", "--json")
    assert chat.summary["dataset"] == {"name": "random", "file": None, **NOTHING}
