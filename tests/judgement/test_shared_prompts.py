"""Prompts that several clients send alike are counted alike, and read as they were written."""

from __future__ import annotations

import json
from pathlib import Path

from servetop.simulator.server.tokens import count_tokens
from tests.judgement.shared_prompts import shared_prompts, write_prompts


def test_each_prompt_has_the_tokens_and_a_beginning_of_its_own() -> None:
    found = shared_prompts(120, tokens=32)
    assert [count_tokens(each) for each in found] == [32] * 120
    assert len({each[:16] for each in found}) == 120
    assert found == shared_prompts(120, tokens=32)
    assert all(each == each.strip() for each in found)


def test_a_client_reads_the_prompts_by_its_keys(tmp_path: Path) -> None:
    file = write_prompts(tmp_path / "a.jsonl", ["one", "two"], output_tokens=5, keys=("text", "output_length"))
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert rows == [{"text": "one", "output_length": 5}, {"text": "two", "output_length": 5}]
