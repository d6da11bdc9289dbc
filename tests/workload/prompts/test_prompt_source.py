"""Prompts have the requested length and are fixed by their seed."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import WorkloadConfig
from servetop.workload.build import prompts_for
from servetop.workload.prompts.ordinary_tokens import UNCHECKED_IDS


@given(st.integers(1, 300), st.integers(0, 1000))
def test_token_prompts_have_exactly_the_requested_length(length: int, seed: int) -> None:
    source = prompts_for(WorkloadConfig(input_len=length, output_len=9), (seed,))
    once, again = (list(itertools.islice(source.prompts(), 3)) for _ in range(2))
    assert once == again
    for prompt in once:
        assert prompt.token_ids is not None
        assert len(prompt.token_ids) == prompt.input_tokens == length
        assert all(each in UNCHECKED_IDS for each in prompt.token_ids)
        assert prompt.output_tokens == 9


def test_prompts_differ_from_their_first_token_on() -> None:
    prompts = list(itertools.islice(prompts_for(WorkloadConfig(input_len=50), (1,)).prompts(), 50))
    assert len({prompt.token_ids[:3] for prompt in prompts if prompt.token_ids is not None}) == 50


def test_chat_prompts_have_one_word_for_each_token() -> None:
    prompt = next(prompts_for(WorkloadConfig(input_len=40, endpoint="chat"), (1,)).prompts())
    assert prompt.token_ids is None
    assert len(prompt.text.split()) == prompt.input_tokens == 40
