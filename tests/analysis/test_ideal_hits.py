"""Ideal hits of prefixes and conversations, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from servetop.analysis.prefix_cache.ideal_hits import HitCount, cold_stages, hits_of_conversations, hits_of_prefixes
from servetop.core.config import RunConfig
from servetop.core.events import StageChange


def test_prompts_find_whole_blocks_of_their_prefix_except_at_its_first_use() -> None:
    prompts = np.array([100.0, 100.0, 100.0, 100.0])
    count = hits_of_prefixes(prompts, prefix_tokens=40, first_uses=1, block_size=16)
    assert (count.found, count.looked_up, count.rate) == (3 * 32, 400, 96 / 400)
    assert hits_of_prefixes(prompts, prefix_tokens=40, first_uses=9, block_size=16).found == 0


def test_the_last_token_of_a_prompt_is_always_computed() -> None:
    prompts = np.array([32.0, 33.0])
    assert hits_of_prefixes(prompts, prefix_tokens=100, first_uses=0, block_size=16).found == 16 + 32


def test_a_turn_finds_the_turn_before_it_without_its_last_token() -> None:
    conversations, prompts, outputs = np.array([1.0, 1, 2, 2]), np.array([20.0, 50, 20, 40]), np.array([13.0, 9, 9, 9])
    count = hits_of_conversations(conversations, prompts, outputs, prefix_tokens=17, block_size=16)
    assert count.found == 16 + 32 + 16 + 16
    assert count.looked_up == 130


def test_counts_of_stages_add_up_and_none_has_no_rate() -> None:
    assert (HitCount(3, 10) + HitCount(1, 10)).rate == pytest.approx(0.2)
    assert math.isnan(HitCount(0, 0).rate)


def test_the_cache_is_emptied_before_each_cell_or_before_the_first_load_but_not_before_a_warm_up() -> None:
    stages = [
        StageChange(at=0, index=each, label="", request_rate=1, max_concurrency=1, max_num_seqs=1, warmup=not each)
        for each in range(4)
    ]
    assert cold_stages(stages, RunConfig()) == set()
    assert cold_stages(stages, RunConfig(prefix_cache="cold")) == {1}
    assert cold_stages(stages, RunConfig(prefix_cache="cold", drain_at_stages=True)) == {1, 2, 3}
