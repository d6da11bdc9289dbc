"""Length distributions: means, bounds and seeds."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.arrays import IntArray
from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.workload.prompts.lengths import LENGTH_DISTRIBUTIONS, lengths_for


def drawn(count: int = 20_000, seed: int = 3, **workload: Any) -> IntArray:
    pairs = lengths_for(WorkloadConfig(**workload), (seed,)).pairs()
    return np.array(list(itertools.islice(pairs, count)), dtype=np.int64)


@given(st.sampled_from(sorted(set(LENGTH_DISTRIBUTIONS) - {"sharegpt"})), st.integers(1, 5000), st.integers(1, 5000))
def test_every_length_is_a_token_or_more_and_fixed_by_the_seed(distribution: str, prompt: int, output: int) -> None:
    pairs = drawn(300, lengths=distribution, input_len=prompt, output_len=output)
    assert pairs.min() >= 1
    assert (pairs == drawn(300, lengths=distribution, input_len=prompt, output_len=output)).all()


def test_lengths_are_fixed_by_default() -> None:
    assert set(map(tuple, drawn(50, input_len=7, output_len=9).tolist())) == {(7, 9)}
    assert drawn(2, lengths="fixed:output=3", input_len=7).tolist() == [[7, 3], [7, 3]]


def test_a_range_ratio_gives_uniform_lengths_around_the_means() -> None:
    pairs = drawn(input_len=100, output_len=10, range_ratio=0.3)
    assert (pairs.min(axis=0).tolist(), pairs.max(axis=0).tolist()) == ([70, 7], [130, 13])
    assert pairs.mean(axis=0) == pytest.approx([100, 10], rel=0.02)


@pytest.mark.parametrize(
    ("distribution", "mean", "spread"),
    [
        ("normal:output_mean=200,output_std=20", 200, 20),
        ("lognormal:output_mean=200,output_sigma=0.5", 200, 200 * 0.533),
        ("capped-exponential:output_mean=200", 200, 200),
    ],
)
def test_a_distribution_keeps_its_mean_and_spread(distribution: str, mean: float, spread: float) -> None:
    outputs = drawn(lengths=distribution)[:, 1]
    assert outputs.mean() == pytest.approx(mean, rel=0.04)
    assert outputs.std() == pytest.approx(spread, rel=0.06)


def test_capped_exponential_lengths_do_not_pile_up_at_the_cap() -> None:
    outputs = drawn(lengths="capped-exponential:output_mean=128,output_cap=32")[:, 1]
    assert outputs.max() <= 32
    assert (outputs == 32).mean() < 2 * (outputs == 30).mean()


def test_caps_bound_normal_and_lognormal_lengths() -> None:
    pairs = drawn(lengths="lognormal:input_mean=500,input_sigma=2,input_cap=900,output_cap=50")
    assert pairs.max(axis=0).tolist() == [900, 50]


def test_zipf_lengths_follow_their_exponent() -> None:
    inputs = drawn(lengths="zipf:exponent=1,input_cap=1000")[:, 0]
    assert (inputs == 1).mean() / (inputs == 2).mean() == pytest.approx(2.0, rel=0.15)
    assert inputs.max() <= 1000


def test_sharegpt_lengths_are_those_that_vllms_benchmark_keeps() -> None:
    pairs = drawn(lengths="sharegpt")
    assert pairs.min() >= 4
    assert pairs[:, 0].max() <= 1024
    assert pairs.sum(axis=1).max() <= 2048
    assert pairs.mean(axis=0) == pytest.approx([110.6, 328.3], rel=0.05)


def test_sharegpt_outputs_are_scaled_to_a_mean_by_their_spread() -> None:
    plain, wide = (drawn(lengths=f"sharegpt:output_mean=230,output_spread={spread}")[:, 1] for spread in (1, 2))
    assert plain.mean() == pytest.approx(230, rel=0.03)
    assert wide.mean() == pytest.approx(230, rel=0.05)
    assert wide.std() > 1.3 * plain.std()


def test_a_sharegpt_sample_has_its_mean_exactly_and_repeats() -> None:
    pairs = drawn(1000, lengths="sharegpt:sample=500,output_mean=230,output_spread=2")
    assert pairs[:500, 1].mean() == pytest.approx(230, rel=0.001)
    assert (pairs[:500] == pairs[500:]).all()
    assert (pairs[:500] != drawn(500, seed=4, lengths="sharegpt:sample=500,output_mean=230")).any()


def test_a_sharegpt_subset_is_the_same_for_every_seed() -> None:
    one, other = (drawn(5000, seed=seed, lengths="sharegpt:subset=40") for seed in (1, 2))
    assert set(map(tuple, one.tolist())) == set(map(tuple, other.tolist()))
    assert len(set(map(tuple, one.tolist()))) <= 40


def test_normal_lengths_can_have_uniform_prompts() -> None:
    pairs = drawn(lengths="normal:input_max=50,output_mean=20,output_std=30,output_cap=40")
    assert (pairs.min(axis=0).tolist(), pairs.max(axis=0).tolist()) == ([1, 1], [50, 40])
    assert pairs[:, 0].mean() == pytest.approx(25.5, rel=0.03)


@pytest.mark.parametrize(("cap", "mean"), [(32, 15.33), (128, 53.51), (512, 118.45), (1536, 127.99)])
def test_capped_exponential_lengths_have_the_means_of_anyscales_study(cap: int, mean: float) -> None:
    outputs = drawn(lengths=f"capped-exponential:output_mean=128,output_cap={cap}")[:, 1]
    assert outputs.mean() == pytest.approx(mean, rel=0.04)


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"lengths": "sharegpt:subset=60000"}, "subset=60000: give 54982 or less"),
        ({"lengths": "gaussian"}, "--lengths: unknown 'gaussian'"),
        ({"lengths": "normal:mean=3"}, "normal takes input_mean"),
        ({"lengths": "normal:input_mean=-3"}, "give a number above 0"),
        ({"lengths": "sharegpt:total_cap=5"}, "no pair is within"),
        ({"range_ratio": 1.0}, "--random-range-ratio 1: give a fraction"),
        ({"range_ratio": 0.5, "lengths": "normal"}, "--random-range-ratio is for uniform lengths"),
    ],
)
def test_invalid_lengths_are_rejected(workload: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        drawn(1, **workload)
