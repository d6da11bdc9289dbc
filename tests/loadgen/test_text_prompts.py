"""Text prompts for dialects that accept no token ids."""

from __future__ import annotations

from servetop.core.config import WorkloadConfig
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.request.prerender import prompt_source
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.stage_draws import StageDraws


def test_completions_send_token_ids_unless_text_prompts_are_required() -> None:
    workload = WorkloadConfig(endpoint="completions", input_len=7)
    for text_prompts in (False, True):
        setup = SenderSetup(url="", model="m", workload=workload, origin_ns=0, text_prompts=text_prompts)
        prompt = next(iter(prompt_source(setup, StageDraws(arrivals=()), skipped=SkippedRows()).prompts()))
        assert (prompt.token_ids is None, len(prompt.text.split())) == (text_prompts, 7 if text_prompts else 0)
        assert prompt.input_tokens == 7
