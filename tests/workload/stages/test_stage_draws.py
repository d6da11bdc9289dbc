"""The requests of a cell depend on the seed, its load and its repeat: not on its place, nor on the other cells."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import RunConfig, StageConfig, WorkloadConfig
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.build import arrivals_of, prompts_for
from servetop.workload.prompts.prompt_salt import salted
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.schedule import Schedule
from servetop.workload.stages.stage_draws import DrawSeeds, StageDraws

BLOCK = 16
GRID = [
    StageConfig(request_rate=rate, max_num_seqs=batch, repeat=repeat, duration=1.0)
    for batch, rate, repeat in itertools.product((16, 64), (8.0, 16.0), (0, 1))
]
Sent = tuple[list[float], list[Prompt]]


def run_of(cells: Sequence[StageConfig], *, seed: int = 3, sweep: bool = True, **workload: Any) -> RunConfig:
    return RunConfig(workload=WorkloadConfig(**workload), stages=tuple(cells), seed=seed, drain_at_stages=sweep)


def draws_of(config: RunConfig) -> Mapping[int, StageDraws]:
    return DrawSeeds.of(config).plan(enumerate(config.stages))


def sent_by(config: RunConfig, count: int = 12) -> dict[StageConfig, Sent]:
    """The due times after the start of the stage, and the prompts, of the first requests of each cell."""
    found = {}
    for index, draws in draws_of(config).items():
        cell = config.stages[index]
        times = arrivals_of(config.workload)(draws)(cell.request_rate).due_times()
        prompts = itertools.islice(prompts_for(config.workload, draws.prompts).prompts(), count)
        altered = [prompt if draws.salt is None else salted(prompt, draws.salt) for prompt in prompts]
        found[cell] = (list(itertools.islice(times, count)), altered)
    return found


def lengths(sent: Sent) -> list[tuple[int, int]]:
    return [(prompt.input_tokens, prompt.output_tokens) for prompt in sent[1]]


@given(cells=st.permutations(GRID), count=st.integers(1, len(GRID)))
def test_a_cell_of_a_shuffled_or_resumed_sweep_sends_what_it_sends_in_the_whole_grid(
    cells: list[StageConfig], count: int
) -> None:
    lengths = "lognormal:input_mean=40"
    whole, part = sent_by(run_of(GRID, lengths=lengths), 4), sent_by(run_of(cells[:count], lengths=lengths), 4)
    assert part == {cell: whole[cell] for cell in cells[:count]}


def test_cells_of_one_load_get_equal_times_and_lengths_but_no_common_first_block() -> None:
    sent = sent_by(run_of(GRID, lengths="lognormal:input_mean=40"))
    for cell in GRID[: len(GRID) // 2]:
        first, second = sent[cell], sent[dataclasses.replace(cell, max_num_seqs=64)]
        assert first[0] == second[0]
        assert lengths(first) == lengths(second)
    blocks = [tuple((prompt.token_ids or ())[:BLOCK]) for _, prompts in sent.values() for prompt in prompts]
    assert len(set(blocks)) == len(blocks)


def test_other_repeats_loads_and_seeds_are_other_draws() -> None:
    sent = [*sent_by(run_of(GRID)).values(), *sent_by(run_of(GRID, seed=4)).values()]
    gaps = {(cell.request_rate, cell.repeat, number >= len(GRID)): [at * cell.request_rate for at in times]
            for number, (cell, (times, _)) in enumerate(zip([*GRID, *GRID], sent, strict=True))}  # fmt: skip
    assert len(gaps) == 8
    assert len({times[0] for times in gaps.values()}) == 8


def test_a_warm_up_sends_other_requests_than_the_load() -> None:
    cell = GRID[0]
    first, second = draws_of(run_of([dataclasses.replace(cell, warmup=True), cell])).values()
    assert first.prompts != second.prompts


def test_the_length_of_a_cell_does_not_change_its_draws() -> None:
    cell = GRID[0]
    longer = dataclasses.replace(cell, duration=60.0, num_prompts=100)
    assert [*draws_of(run_of([cell])).values()] == [*draws_of(run_of([longer])).values()]


@pytest.mark.parametrize("sweep", [False, True])
def test_a_load_that_comes_again_draws_anew(sweep: bool) -> None:
    stages = [StageConfig(request_rate=rate, duration=1.0) for rate in (8.0, 16.0, 8.0)]
    first, _, again = draws_of(run_of(stages, sweep=sweep)).values()
    assert first.arrivals != again.arrivals
    alone = draws_of(run_of([stages[1], stages[0]], sweep=sweep))[1]
    assert alone == first


def test_the_stages_of_a_ramp_share_one_prompt_stream_without_a_salt() -> None:
    draws = draws_of(run_of(GRID, sweep=False, dataset="sonnet"))
    assert {each.stream for each in draws.values()} == {((3, 0), None)}
    assert len({each.arrivals for each in draws.values()}) == len(GRID)


def test_each_cell_reads_a_dataset_from_its_beginning_with_other_first_words() -> None:
    cells = [StageConfig(request_rate=rate, duration=1.0) for rate in (8.0, 16.0)]
    config = run_of(cells, dataset="mtbench", endpoint="chat", output_len=8)
    plain = [prompt.text for prompt in itertools.islice(prompts_for(config.workload, (3, 0)).prompts(), 12)]
    texts = [[prompt.text for prompt in prompts] for _, prompts in sent_by(config).values()]
    assert [len(text) for text in texts[0]] == [len(text) for text in texts[1]] == [len(text) for text in plain]
    assert all(one[: 4 * BLOCK] != two[: 4 * BLOCK] for one, two in zip(*texts, strict=True))


def test_each_cell_replays_a_trace_from_its_beginning_and_a_ramp_continues_it() -> None:
    cells = [StageConfig(request_rate=2.0, max_num_seqs=batch, duration=4.0) for batch in (16, 64)]

    def due_in(sweep: bool) -> list[list[float]]:
        config = run_of(cells, sweep=sweep, dataset="azure-code", arrivals="trace", trace_rate=2.0)
        plan = LoadPlan(segments=tuple(enumerate(cells)), draws=draws_of(config), begin=0.0)
        due = Schedule(plan, arrivals=arrivals_of(config.workload), now=0.0).due(8.0)
        return [[round(each.at - 4.0 * stage, 6) for each in due if each.stage == stage] for stage in (0, 1)]

    first, second = due_in(sweep=True)
    assert first == second
    first, second = due_in(sweep=False)
    assert first != second


def test_cancellations_are_part_of_the_draws() -> None:
    def after(*cells: StageConfig, **workload: Any) -> list[list[int | None]]:
        sent = sent_by(run_of(cells, cancel_fraction=0.5, output_len=64, **workload), 20)
        return [[prompt.cancel_after for prompt in prompts] for _, prompts in sent.values()]

    first, other, larger = after(GRID[0], GRID[1], GRID[4])
    assert 4 <= first.count(None) <= 16
    assert first == larger
    assert first != other
    assert after(GRID[2], GRID[0])[1] == first
