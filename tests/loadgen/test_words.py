"""Prompts of words for wires that take no token ids, whatever their endpoint is called."""

from __future__ import annotations

from servetop.core.config import WorkloadConfig
from servetop.loadgen.sender.preparation import prompts_of
from servetop.loadgen.worker.messages import SenderSetup
from servetop.workload.datasets.rows import SkippedRows


def test_completions_take_token_ids_unless_the_wire_wants_words() -> None:
    workload = WorkloadConfig(endpoint="completions", input_len=7)
    for words in (False, True):
        setup = SenderSetup(url="", model="m", workload=workload, origin_ns=0, words=words)
        prompt = next(iter(prompts_of(setup, SkippedRows()).prompts()))
        assert (prompt.token_ids is None, len(prompt.text.split())) == (words, 7 if words else 0)
        assert prompt.input_tokens == 7
