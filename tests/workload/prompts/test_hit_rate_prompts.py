"""Prompts with a given ideal hit rate, and those that warm the cache for them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.build import EngineTraits, prompts_for
from servetop.workload.prompts.hit_rate_prompts import check_hit_rate, shared_blocks
from servetop.workload.request_lengths import request_lengths
from servetop.workload.warming_prompts import check_warmable, warming_prompts


def found_tokens(prompts: list[tuple[int, ...]], known: list[tuple[int, ...]], *, block: int) -> list[int]:
    """Tokens of each prompt that an infinite cache of blocks holds after it has seen `known`."""
    cached = {each[:end] for each in known for end in range(block, len(each) + 1, block)}
    found = []
    for each in prompts:
        ends = range(block, len(each), block)  # the last token is always computed
        found.append(next((end - block for end in ends if each[:end] not in cached), ends[-1] if ends else 0))
    return found


@pytest.mark.parametrize("block", [1, 16, 32])
@pytest.mark.parametrize(("rate", "length", "ratio"), [(0.6, 200, 0.0), (0.25, 333, 0.5), (0.9, 1000, 0.3)])
def test_a_warm_cache_holds_that_fraction_of_any_fifty_prompts(
    rate: float, length: int, ratio: float, block: int
) -> None:
    workload = WorkloadConfig(input_len=length, range_ratio=ratio, cache_hit_rate=rate, num_prefixes=2)
    engine = EngineTraits(block_size=block)
    source = prompts_for(workload, (3, 0), engine=engine)
    prompts = [prompt.token_ids or () for prompt in itertools.islice(source.prompts(), 150)]
    warm = [prompt.token_ids or () for prompt in warming_prompts(workload, (3, 0), engine=engine)]
    assert len(warm) == 2
    found = found_tokens(prompts, warm, block=block)
    for start in (0, 50, 100):
        total = sum(map(len, prompts[start : start + 50]))
        assert abs(sum(found[start : start + 50]) - rate * total) <= block + (50 if block == 1 else 0)
    blocks = shared_blocks(map(len, prompts), rate=rate, block_size=block)
    lengths = itertools.islice(request_lengths(workload, (3, 0), block_size=block), 150)
    assert [(each.prompt_tokens, each.shared[0][1]) for each in lengths] == [
        (len(prompt), count * block) for prompt, count in zip(prompts, blocks, strict=True)
    ]


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=200), st.floats(0, 0.95), st.sampled_from((1, 16, 64)))
@settings(max_examples=60, deadline=None)
def test_no_prompt_is_shared_as_a_whole_and_rounding_never_adds_up(lengths: list[int], rate: float, block: int) -> None:
    blocks = list(shared_blocks(lengths, rate=rate, block_size=block))
    assert all(0 <= each * block < length for each, length in zip(blocks, lengths, strict=True))
    assert sum(blocks) * block <= rate * sum(lengths) + block


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        ({"cache_hit_rate": 1.0}, "from 0 to below 1"),
        ({"cache_hit_rate": 0.9, "input_len": 40}, "reach at most 0.8"),
        ({"cache_hit_rate": 0.5, "dataset": "sharegpt"}, "sharegpt has others"),
        ({"cache_hit_rate": 0.5, "num_turns": "3"}, "conversations have others"),
        ({"cache_hit_rate": 0.5, "prefix_len": 9}, "leave out --random-prefix-len"),
        ({"cache_hit_rate": 0.5, "n": 2}, "leave out --n"),
    ],
)
def test_an_impossible_rate_is_refused(workload: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        check_hit_rate(WorkloadConfig(**workload))


def test_the_warming_prompts_are_the_shared_prefixes_of_the_load_and_one_token() -> None:
    workload = WorkloadConfig(input_len=20, prefix_len=40, num_prefixes=3, model_mix={"a": 1.0, "b": 1.0, "c": 0.0})
    warm = warming_prompts(workload, (5, 0), engine=EngineTraits())
    assert [prompt.model for prompt in warm] == ["a", "b"] * 3
    prefixes = {(prompt.token_ids or ())[:40] for prompt in warm}
    sent = itertools.islice(prompts_for(workload, (5, 0)).prompts(), 30)
    assert {(prompt.token_ids or ())[:40] for prompt in sent} == prefixes
    assert {(len(prompt.token_ids or ()), prompt.output_tokens) for prompt in warm} == {(41, 1)}
    (text, *_) = warming_prompts(workload, (5, 0), engine=EngineTraits(as_text=True))
    (sent_text,) = itertools.islice(prompts_for(workload, (5, 0), engine=EngineTraits(as_text=True)).prompts(), 1)
    assert sent_text.text.split()[:40] in [
        each.text.split()[:40] for each in warming_prompts(workload, (5, 0), engine=EngineTraits(as_text=True))
    ]
    assert len(text.text.split()) == 41
    short = warming_prompts(workload, (5, 0), engine=EngineTraits(), max_model_len=32)
    assert {len(prompt.token_ids or ()) for prompt in short} == {31}


def test_a_workload_without_shared_prefixes_cannot_be_warmed() -> None:
    with pytest.raises(UsageError, match="share no prefix"):
        check_warmable(WorkloadConfig())
    with pytest.raises(UsageError, match="does not know what the prompts of sonnet share"):
        check_warmable(WorkloadConfig(dataset="sonnet", prefix_len=20))
    check_warmable(WorkloadConfig(dataset="prefix_repetition"))
    check_warmable(WorkloadConfig(cache_hit_rate=0.5))
