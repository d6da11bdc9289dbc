"""The paces of several servers in one table, and what each has in comparison with the others."""

from __future__ import annotations

import numpy as np

from servetop.analysis.fleet.pace_table import LEAST_TOKENS, PaceTable, median_of_others
from servetop.analysis.fleet.token_times import TokenPace


def pace(
    seconds: float, *, tokens: float = 2 * LEAST_TOKENS, prompts: float = 100.0, prefill: float = 0.0
) -> TokenPace:
    return TokenPace(
        seconds=np.array([seconds]), tokens=np.array([tokens]), decoding=np.array([4.0]),
        prefilling=np.array([prefill]), prompt_tokens=np.array([prompts]),
    )  # fmt: skip


def test_a_server_with_too_few_tokens_is_not_known() -> None:
    table = PaceTable.of([pace(0.01), pace(0.02, tokens=LEAST_TOKENS - 1), pace(0.03)])
    assert table.known[:, 0].tolist() == [True, False, True]
    assert np.isnan(table.seconds[1, 0])
    assert np.isnan(table.decoding[1, 0])
    assert table.usual_seconds[[0, 2], 0].tolist() == [0.03, 0.01]


def test_a_table_can_have_the_times_of_another_one_before_its_own() -> None:
    first, second = PaceTable.of([pace(0.01), pace(0.02)]), PaceTable.of([pace(0.03), pace(0.04, tokens=1.0)])
    both = second.after(first)
    assert both.seconds[0].tolist() == [0.01, 0.03]
    assert both.known.tolist() == [[True, True], [True, False]]
    assert both.prompt_tokens.shape == (2, 2)
    assert both.part(slice(1, 2)).seconds[0].tolist() == [0.03]


def test_the_median_of_the_others_is_the_higher_or_the_lower_of_two() -> None:
    values = np.array([[1.0], [2.0], [4.0]])
    assert median_of_others(values, high=True)[:, 0].tolist() == [4.0, 4.0, 2.0]
    assert median_of_others(values, high=False)[:, 0].tolist() == [2.0, 1.0, 1.0]


def test_more_prompts_are_those_beyond_half_as_many_again() -> None:
    table = PaceTable.of([pace(0.01, prompts=100.0), pace(0.01, prompts=151.0), pace(0.01, prompts=100.0)])
    assert table.more_prompts[:, 0].tolist() == [False, True, False]
    busy = PaceTable.of([pace(0.01, prefill=0.2), pace(0.01, prefill=0.7), pace(0.01, prefill=0.4)])
    assert busy.more_prompts[:, 0].tolist() == [False, False, False], "0.5 more than 1.5 times the lower one"
    longest = PaceTable.of([pace(0.01), pace(0.01, prefill=0.6), pace(0.01)])
    assert longest.more_prompts[:, 0].tolist() == [False, True, False]
