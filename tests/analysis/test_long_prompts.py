"""Long prompts are an episode if most prompts are longer than before, not if a few very long ones came by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.core.histogram import LogHistogram
from servetop.core.tick import Tick
from tests.analysis.test_episode_fold import found, tick

USUAL, SLOW_FROM = (100, 150, 200, 120), 240
"""Mean prompt tokens of successive ticks; the tick from which TTFT is five times as long."""


def prompts(lengths: Sequence[int]) -> list[Tick]:
    ticks = []
    for index, length in enumerate(lengths):
        wait = LogHistogram.of([0.5 if index >= SLOW_FROM else 0.1] * 5)
        client = replace(tick(index).client, prompt_tokens=5 * length, ttft=wait, ttft_due=wait)
        ticks.append(replace(tick(index), client=client))
    return ticks


def test_prompts_that_are_all_four_times_as_long_are_an_episode() -> None:
    lengths = [(4 if index >= SLOW_FROM else 1) * USUAL[index % 4] for index in range(320)]
    (long,) = found(prompts(lengths))
    assert (long.kind, long.begin) == (EpisodeKind.LONG_PROMPTS, SLOW_FROM / 4)


def test_a_few_very_long_prompts_among_usual_ones_are_none() -> None:
    rare = {20, 70, 120, 170, 220, 246, 252, 258, 264, 270}
    lengths = [6000 if index in rare else USUAL[index % 4] for index in range(320)]
    assert found(prompts(lengths)) == ()


def test_the_first_seconds_of_unequal_prompts_are_no_standard_for_the_next_ones() -> None:
    """Four short prompts came first by chance; their spread says nothing of that of the workload."""
    lengths = [100 + index if index < 4 else 400 + 37 * (index % 20) for index in range(60)]
    assert found([slower_from(each, index, 4) for index, each in enumerate(prompts(lengths))]) == ()


def slower_from(tick: Tick, index: int, position: int) -> Tick:
    wait = LogHistogram.of([0.5 if index >= position else 0.1] * 5)
    return replace(tick, client=replace(tick.client, ttft=wait, ttft_due=wait))
