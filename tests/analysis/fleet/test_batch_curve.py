"""A larger batch explains a longer time per token as far as the other servers took longer for larger batches."""

from __future__ import annotations

import dataclasses
from random import Random

import numpy as np
import pytest

from servetop.analysis.fleet.batch_curve import REMEMBERED, explained_seconds, slower_than_batch
from servetop.analysis.fleet.pace_table import PaceTable
from servetop.core.arrays import FloatArray

TIMES = 100
LAST = -1


def seconds_of(batch: FloatArray) -> FloatArray:
    """An engine that takes 10 ms for a token, and 0.1 ms more for each request in the batch."""
    return 0.010 + 0.0001 * batch


def table(*, slower: float = 1.0, batch: float = 40.0, seed: int = 1, spread: float = 4.0) -> PaceTable:
    """Three servers with batches around 20; the second has its own, and its time for that is `slower` times as long."""
    random = np.random.default_rng(seed)
    batches = np.maximum(20 + spread * random.standard_normal((3, TIMES)), 1.0)
    batches[1] = batch
    seconds = seconds_of(batches)
    seconds[1] *= slower
    alike = np.full((3, TIMES), 100.0)
    return PaceTable(
        known=np.ones((3, TIMES), dtype=bool), seconds=seconds, decoding=batches, prefilling=np.zeros((3, TIMES)),
        prompt_tokens=alike,
    )  # fmt: skip


def named(found: PaceTable) -> list[bool]:
    """Whether each server is slower at the last time."""
    return [bool(each) for each in slower_than_batch(found, 1.5)[:, LAST]]


def test_a_slow_server_whose_batch_grew_with_its_times_is_named() -> None:
    found = table(slower=2.0)
    assert 2.0 <= found.seconds[1, LAST] / found.usual_seconds[1, LAST] < 2.6
    assert found.decoding[1, LAST] / 20 >= 2.0, "in proportion to its batch it is not slower"
    assert named(found) == [False, True, False]


@pytest.mark.parametrize("batch", [25.0, 40.0, 80.0])
def test_a_server_that_takes_what_its_batch_explains_is_not(batch: float) -> None:
    found = table(batch=batch)
    assert named(found) == [False] * 3
    assert explained_seconds(found)[1, LAST] >= found.seconds[1, LAST] * 0.999


def test_a_batch_larger_than_any_that_others_had_is_explained_by_their_line() -> None:
    found = explained_seconds(table(batch=80.0))
    assert found[1, LAST] == pytest.approx(seconds_of(np.array(80.0)), rel=0.01)


def test_batches_that_never_vary_explain_a_time_in_proportion() -> None:
    found = table(slower=2.0, spread=0.0)
    assert explained_seconds(found)[1, LAST] == pytest.approx(2 * 0.012)
    assert named(found) == [False] * 3


def test_times_that_vary_for_the_same_batch_explain_more() -> None:
    calm, random = table(), np.random.default_rng(7)
    noisy = dataclasses.replace(calm, seconds=calm.seconds * random.uniform(0.7, 1.3, calm.seconds.shape))
    assert explained_seconds(noisy)[1, LAST] > 1.1 * explained_seconds(calm)[1, LAST]


def test_a_server_with_more_tokens_a_second_than_the_others_ever_had_has_more_load() -> None:
    found = table(slower=1.6, batch=120.0)
    assert found.decoding[1, LAST] / found.seconds[1, LAST] > (found.decoding / found.seconds)[[0, 2]].max()
    assert found.seconds[1, LAST] >= 1.5 * explained_seconds(found)[1, LAST]
    assert named(found) == [False] * 3


@pytest.mark.parametrize(("others_had", "expected"), [(100.0, False), (900.0, True)])
def test_more_prompts_explain_it_unless_others_had_as_many_lately(others_had: float, expected: bool) -> None:
    found = table(slower=2.0)
    found.prompt_tokens[1] = 800.0
    found.prompt_tokens[0, TIMES - REMEMBERED // 2] = others_had
    assert named(found)[1] == expected


def test_a_prompt_that_computes_for_longer_than_any_other_explains_it() -> None:
    found = table(slower=2.0)
    found.prefilling[1, LAST] = 1.0
    assert not named(found)[1]


def test_what_is_longer_ago_than_the_remembered_readings_explains_nothing() -> None:
    found = table(slower=2.0)
    found.prompt_tokens[1] = 800.0
    found.prompt_tokens[0, TIMES - REMEMBERED - 1] = 900.0
    assert not named(found)[1]
    found.prompt_tokens[0, TIMES - REMEMBERED] = 900.0
    assert named(found)[1]


def test_unknown_readings_name_no_server() -> None:
    found = table(slower=2.0)
    found.known[1, LAST] = False
    found.seconds[1, LAST] = np.nan
    assert named(found) == [False] * 3
    empty = np.full((3, 5), np.nan)
    none = PaceTable(
        known=np.zeros((3, 5), dtype=bool), seconds=empty, decoding=empty, prefilling=empty, prompt_tokens=empty
    )
    assert not slower_than_batch(none, 1.5).any()


@pytest.mark.parametrize("seed", range(20))
def test_random_batches_of_equal_servers_name_none(seed: int) -> None:
    random = np.random.default_rng(seed)
    batches = np.maximum(random.gamma(Random(seed).uniform(1, 9), 8.0, (4, TIMES)), 1.0)
    seconds = seconds_of(batches) * random.uniform(0.9, 1.1, batches.shape)
    zeros = np.zeros_like(batches)
    equal = PaceTable(
        known=np.ones(batches.shape, dtype=bool), seconds=seconds, decoding=batches, prefilling=zeros,
        prompt_tokens=zeros + 100.0,
    )  # fmt: skip
    assert not slower_than_batch(equal, 1.5).any()
