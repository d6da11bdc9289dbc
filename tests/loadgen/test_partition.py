"""A load divided among several senders equals that of one: the same requests at the same times, none sent twice."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.events import Action, Command
from servetop.loadgen.messages import SenderSetup, TimedCommand
from servetop.loadgen.request.prerender import prompt_source
from servetop.loadgen.sender.live_commands import apply_command
from servetop.loadgen.sender.ownership import Ownership, PartitionedPrompts, part_of
from servetop.loadgen.sender.partition import Partition, RequestPartition, partition_for
from servetop.workload.build import arrivals_of
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.schedule import Schedule
from servetop.workload.stages.stage_draws import StageDraws
from servetop.workload.stages.stage_run import Due

Sent = tuple[int, int, float]
"""Number, stage, due time."""
DRAWS = StageDraws(arrivals=())


def setup_of(worker: int, workers: int, **workload: Any) -> SenderSetup:
    given = WorkloadConfig(**{"input_len": 6, **workload})
    return SenderSetup(url="", model="", origin_ns=0, workload=given, worker=worker, workers=workers)


def sent_by(
    setup: SenderSetup, plan: LoadPlan, *, commands: Sequence[Command], wake_ups: Sequence[float]
) -> list[Sent]:
    """What one sender sends until second 4, woken at its own times, applying commands as of their times."""
    partition = partition_for(setup)
    start = partition.earliest_start(plan.begin)
    schedule = Schedule(plan, arrivals=arrivals_of(setup.workload), now=start)
    found: list[Sent] = []
    by_time = {command.at: command for command in commands}
    for at in sorted({*by_time, *wake_ups, 4.0}):
        requests = [partition.select(due) for due in schedule.due(at)]
        found += [(request.number, request.due.stage, request.due.at) for request in requests if request]
        if at in by_time:
            apply_command(schedule, by_time[at], at)
    return found


@given(
    rates=st.lists(st.sampled_from([3.0, 20.0, 55.5]), min_size=1, max_size=3),
    burstiness=st.sampled_from([0.5, 1.0, math.inf]),
    seed=st.integers(0, 5),
    changes=st.lists(st.tuples(st.floats(0.1, 3.9), st.sampled_from([5.0, 80.0])), max_size=3),
    workers=st.integers(2, 5),
    wake_ups=st.lists(st.floats(0.0, 4.0), max_size=8),
)
def test_due_times_do_not_depend_on_the_number_of_senders(
    rates: list[float],
    burstiness: float,
    seed: int,
    changes: list[tuple[float, float]],
    workers: int,
    wake_ups: list[float],
) -> None:
    stages = [StageConfig(request_rate=rate, duration=1.0, num_prompts=30) for rate in rates]
    draws = {index: StageDraws(arrivals=(seed, index)) for index in range(len(stages))}
    plan = LoadPlan(segments=tuple(enumerate(stages)), draws=draws, begin=0.25)
    commands = [Command(id=1, at=at, action=Action.SET_RATE, value=rate) for at, rate in changes]
    one = sent_by(setup_of(0, 1, burstiness=burstiness), plan, commands=commands, wake_ups=[])
    all_of_them = [
        sent_by(
            setup_of(worker, workers, burstiness=burstiness),
            plan,
            commands=commands,
            wake_ups=wake_ups[worker:],
        )
        for worker in range(workers)
    ]
    assert sorted(itertools.chain(*all_of_them)) == one
    assert [number for number, _, _ in one] == list(range(len(one)))


@given(
    workers=st.integers(1, 4),
    dataset=st.sampled_from(["random", "sonnet", "prefix_repetition", "azure-code"]),
    lengths=st.sampled_from(["", "lognormal:input_mean=5"]),
)
def test_prompts_do_not_depend_on_the_number_of_senders(workers: int, dataset: str, lengths: str) -> None:
    workload: dict[str, Any] = {"dataset": dataset, "lengths": lengths}
    one = list(itertools.islice(prompt_source(setup_of(0, 1, **workload), DRAWS).prompts(), 12))
    for worker in range(workers):
        setup = setup_of(worker, workers, **workload)
        own = partition_for(setup).prompts(prompt_source(setup, DRAWS))
        found = [prompt for _, prompt in itertools.islice(own, len(one[worker::workers]))]
        assert found == one[worker::workers]


@given(limit=st.integers(0, 100), workers=st.integers(1, 9))
def test_a_limit_is_divided_as_evenly_as_possible(limit: int, workers: int) -> None:
    parts = [part_of(limit, rank, workers) for rank in range(workers)]
    assert sum(parts) == limit
    assert max(parts) - min(parts) <= 1
    assert parts == sorted(parts, reverse=True)


def test_a_single_sender_selects_every_request_and_numbers_them_in_order() -> None:
    partition = partition_for(dataclasses.replace(setup_of(0, 1), first_id=7))
    assert numbers(partition, 3) == [7, 8, 9]
    assert partition.claim(Due(0, 1.0)).number == 10
    partition.count_from(20)
    assert numbers(partition, 2) == [20, 21]
    assert (partition.limit_for(5), partition.connections(3), partition.working) == (5, 3, True)


def test_10_slots_among_4_senders_are_3_3_2_2_and_2_slots_are_1_1_0_0() -> None:
    partitions = [RequestPartition(setup_of(worker, 4)) for worker in range(4)]
    assert [each.limit_for(10) for each in partitions] == [3, 3, 2, 2]
    assert [each.limit_for(2, number_from=1000) for each in partitions] == [1, 1, 0, 0]
    assert [each.working for each in partitions] == [True, True, False, False]
    assert [each.limit_for(None, number_from=2000) for each in partitions] == [None] * 4


def numbers(partition: Partition, count: int) -> list[int]:
    return numbers_at(partition, [1.0] * count)


def numbers_at(partition: Partition, due_times: Sequence[float]) -> list[int]:
    selected = [partition.select(Due(0, at)) for at in due_times]
    return [request.number for request in selected if request is not None]


def test_after_a_death_the_others_send_its_requests_from_a_number_that_none_has_reached() -> None:
    partitions = [RequestPartition(setup_of(worker, 3)) for worker in range(3)]
    before = [numbers(each, 7) for each in partitions]
    assert before == [[0, 3, 6], [1, 4], [2, 5]]
    for each in partitions[1:]:
        each.apply(TimedCommand(at=2.0, number_from=100, active=(1, 2)))
    assert [numbers(each, 6) for each in partitions[1:]] == [[100, 102, 104], [101, 103, 105]]


def test_a_sender_on_standby_sends_nothing_until_it_is_active() -> None:
    setups = [setup_of(worker, 2) for worker in range(2)]
    partitions = [RequestPartition(dataclasses.replace(setup, active=(0,))) for setup in setups]
    assert [numbers(each, 4) for each in partitions] == [[0, 1, 2, 3], []]
    assert partitions[1].limit_for(8) == 0
    for each in partitions:
        each.apply(TimedCommand(at=2.0, number_from=50, active=(0, 1)))
    assert [numbers(each, 4) for each in partitions] == [[50, 52], [51, 53]]


def test_a_sender_that_receives_a_timed_command_late_counts_like_the_others_and_reuses_no_number() -> None:
    late = RequestPartition(setup_of(0, 2))
    assert numbers_at(late, [1.0, 1.1, 1.2, 1.3, 1.4]) == [0, 2, 4]
    late.apply(TimedCommand(at=1.15, number_from=99))  # two arrivals had been due by then, one of them its own
    assert [late.select(Due(0, 2.0)) is not None for _ in range(3)] == [True, False, True]
    assert numbers(late, 1) == []
    assert numbers(late, 1) == [10]


def test_a_request_number_keeps_its_prompt_when_the_active_senders_change() -> None:
    every = list(itertools.islice(prompt_source(setup_of(0, 1), DRAWS).prompts(), 60))
    ownership = Ownership(1, (0, 1, 2), first=0)
    prompts = PartitionedPrompts(prompt_source(setup_of(1, 3), DRAWS), ownership, first=0)
    assert [next(prompts) for _ in range(2)] == [(1, every[1]), (4, every[4])]
    ownership.change((0, 1), unused_from=6, first=40)
    assert [next(prompts) for _ in range(3)] == [(number, every[number]) for number in (41, 43, 45)]
