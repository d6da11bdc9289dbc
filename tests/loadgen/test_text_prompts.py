"""Text prompts for dialects that accept no token ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.request.prerender import prompt_source
from servetop.workload.stages.stage_draws import StageDraws


def test_completions_send_token_ids_unless_text_prompts_are_required() -> None:
    workload = WorkloadConfig(endpoint="completions", input_len=7)
    for text_prompts in (False, True):
        setup = SenderSetup(url="", model="m", workload=workload, origin_ns=0, text_prompts=text_prompts)
        prompt = next(iter(prompt_source(setup, StageDraws(arrivals=())).prompts()))
        assert (prompt.token_ids is None, len(prompt.text.split())) == (text_prompts, 7 if text_prompts else 0)
        assert prompt.input_tokens == 7


@pytest.mark.parametrize(("count", "notes"), [(3, 0), (4, 1), (9, 1)])
async def test_prompts_that_are_sent_again_are_noted_once(
    server: Any, start: Callable[..., Any], tmp_path: Path, count: int, notes: int
) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text("".join(f'{{"prompt": "What is {number}?"}}\n' for number in range(3)))
    run = start(server.url, endpoint="chat", dataset="custom", dataset_path=str(path))
    run.begin(StageConfig(num_prompts=count))
    await run.finish()
    found = [note.text for report in run.reports for note in report.notes]
    note = "all 3 prompts of the dataset were sent, then again: a prefix cache finds repeated prompts"
    assert found == [note] * notes
