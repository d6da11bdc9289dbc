"""A load dealt out to several senders is the load of one: the same requests, at the same times, none twice."""

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
from servetop.loadgen.sender.live_commands import steer
from servetop.loadgen.sender.partition import DealtPrompts, Partition, part_of
from servetop.loadgen.sender.preparation import prompts_of
from servetop.loadgen.worker.plan_split import pieces_of, share_of
from servetop.workload.build import arrivals_of
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.plan import LoadPlan
from servetop.workload.schedule import Schedule
from servetop.workload.stage_run import Due

Sent = tuple[int, int, float]
"""Number, stage, due time."""


def setup_of(worker: int, workers: int, *, seed: int = 0, **workload: Any) -> SenderSetup:
    given = WorkloadConfig(**{"input_len": 6, **workload})
    return SenderSetup(url="", model="", origin_ns=0, workload=given, seed=seed, worker=worker, workers=workers)


def sent_by(setup: SenderSetup, plan: LoadPlan, *, commands: Sequence[Command], naps: Sequence[float]) -> list[Sent]:
    """What one sender sends until second 4, woken at instants of its own, obeying commands as of their times."""
    share = Partition(setup)
    schedule = Schedule(plan, arrivals=arrivals_of(setup.workload, seed=setup.seed), now=share.starting(plan.begin))
    found: list[Sent] = []
    orders = {command.at: command for command in commands}
    for at in sorted({*orders, *naps, 4.0}):
        taken = [due for due in schedule.due(at) if share.takes(due)]
        found += [(share.number(), due.stage, due.at) for due in taken]
        if at in orders:
            steer(schedule, orders[at], at)
    return found


@given(
    rates=st.lists(st.sampled_from([3.0, 20.0, 55.5]), min_size=1, max_size=3),
    burstiness=st.sampled_from([0.5, 1.0, math.inf]),
    seed=st.integers(0, 5),
    changes=st.lists(st.tuples(st.floats(0.1, 3.9), st.sampled_from([5.0, 80.0])), max_size=3),
    workers=st.integers(2, 5),
    naps=st.lists(st.floats(0.0, 4.0), max_size=8),
)
def test_request_number_i_is_due_at_the_same_time_however_many_senders_there_are(
    rates: list[float],
    burstiness: float,
    seed: int,
    changes: list[tuple[float, float]],
    workers: int,
    naps: list[float],
) -> None:
    stages = [StageConfig(request_rate=rate, duration=1.0, num_prompts=30) for rate in rates]
    plan = LoadPlan(segments=tuple(enumerate(stages)), begin=0.25)
    commands = [Command(id=1, at=at, action=Action.SET_RATE, value=rate) for at, rate in changes]
    one = sent_by(setup_of(0, 1, seed=seed, burstiness=burstiness), plan, commands=commands, naps=[])
    all_of_them = [
        sent_by(
            setup_of(worker, workers, seed=seed, burstiness=burstiness), plan, commands=commands, naps=naps[worker:]
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
def test_request_number_i_has_the_same_prompt_however_many_senders_there_are(
    workers: int, dataset: str, lengths: str
) -> None:
    workload: dict[str, Any] = {"dataset": dataset, "lengths": lengths}
    one = list(itertools.islice(prompts_of(setup_of(0, 1, **workload), SkippedRows()).prompts(), 12))
    for worker in range(workers):
        setup = setup_of(worker, workers, **workload)
        own = Partition(setup).dealt(prompts_of(setup, SkippedRows())).prompts()
        assert list(itertools.islice(own, len(one[worker::workers]))) == one[worker::workers]


@given(limit=st.integers(0, 100), workers=st.integers(1, 9))
def test_a_limit_is_shared_out_as_evenly_as_it_can_be(limit: int, workers: int) -> None:
    parts = [part_of(limit, rank, workers) for rank in range(workers)]
    assert sum(parts) == limit
    assert max(parts) - min(parts) <= 1
    assert parts == sorted(parts, reverse=True)


def test_10_places_among_4_senders_are_3_3_2_2_and_2_are_1_1_0_0() -> None:
    shares = [Partition(setup_of(worker, 4)) for worker in range(4)]
    assert [share.places(10) for share in shares] == [3, 3, 2, 2]
    assert [share.places(2, number_from=1000) for share in shares] == [1, 1, 0, 0]
    assert [share.working for share in shares] == [True, True, False, False]
    assert [share.places(None, number_from=2000) for share in shares] == [None] * 4


def numbers(share: Partition, count: int) -> list[int]:
    taken = [share.takes(Due(0, 1.0)) for _ in range(count)]
    return [share.number() for _ in range(sum(taken))]


def test_after_a_death_the_others_have_its_share_from_a_number_that_nobody_has_reached() -> None:
    shares = [Partition(setup_of(worker, 3)) for worker in range(3)]
    before = [numbers(share, 7) for share in shares]
    assert before == [[0, 3, 6], [1, 4], [2, 5]]
    for share in shares[1:]:
        share.reform(TimedCommand(at=2.0, number_from=100, active=(1, 2)))
    assert [numbers(share, 6) for share in shares[1:]] == [[100, 102, 104], [101, 103, 105]]


def test_a_sender_that_stands_by_sends_nothing_until_it_joins_in() -> None:
    setups = [setup_of(worker, 2) for worker in range(2)]
    shares = [Partition(dataclasses.replace(setup, active=(0,))) for setup in setups]
    assert [numbers(share, 4) for share in shares] == [[0, 1, 2, 3], []]
    assert shares[1].places(8) == 0
    for share in shares:
        share.reform(TimedCommand(at=2.0, number_from=50, active=(0, 1)))
    assert [numbers(share, 4) for share in shares] == [[50, 52], [51, 53]]


def test_a_sender_that_heard_of_an_order_too_late_counts_as_those_who_were_in_time_and_uses_no_number_twice() -> None:
    late = Partition(setup_of(0, 2))
    for at in (1.0, 1.1, 1.2, 1.3, 1.4):
        late.takes(Due(0, at))
    assert [late.number() for _ in range(3)] == [0, 2, 4]
    late.reform(TimedCommand(at=1.15, number_from=99))  # two arrivals had been due by then, of which one was its own
    assert [late.takes(Due(0, 2.0 + step)) for step in range(3)] == [True, False, True]
    assert [late.number() for _ in range(2)] == [6, 8]


@given(
    count=st.integers(1, 60),
    places=st.integers(1, 12),
    workers=st.integers(1, 5),
    first=st.integers(0, 20),
    warmup=st.booleans(),
)
def test_the_requests_of_a_closed_loop_are_shared_out_without_a_rest(
    count: int, places: int, workers: int, first: int, warmup: bool
) -> None:
    stage = StageConfig(max_concurrency=places, num_prompts=count, warmup=warmup)
    plan = LoadPlan(segments=((0, stage),), begin=0.0, first_number=first)
    parts = [share_of(plan, worker, range(workers)) for worker in range(workers)]
    assert sum(part.segments[0][1].num_prompts or 0 for part in parts if part) == count
    assert all(part is None for part in parts[places:])


def test_a_plan_is_cut_where_no_sender_alone_knows_when_to_go_on() -> None:
    warmup = StageConfig(max_concurrency=8, num_prompts=4, warmup=True)
    open_loop, closed = StageConfig(request_rate=4.0, duration=1.0), StageConfig(max_concurrency=2, duration=1.0)
    plan = LoadPlan(segments=tuple(enumerate([warmup, open_loop, open_loop, closed, open_loop])), begin=0.0)
    assert [[index for index, _ in piece.segments] for piece in pieces_of(plan)] == [[0], [1, 2, 3], [4]]
    assert [piece.followed_by for piece in pieces_of(plan)] == [4, 1, 0]


def test_prompts_stay_those_of_their_numbers_when_senders_are_dealt_anew() -> None:
    every = list(itertools.islice(prompts_of(setup_of(0, 1), SkippedRows()).prompts(), 60))
    setup = setup_of(1, 3)
    share = Partition(setup)
    prompts = DealtPrompts(prompts_of(setup, SkippedRows()), share, first=0)
    own = prompts.prompts()
    assert [next(own) for _ in range(2)] == [every[1], every[4]]
    numbers(share, 6)
    share.reform(TimedCommand(at=2.0, number_from=40, active=(0, 1)))
    assert [next(own) for _ in range(3)] == [every[41], every[43], every[45]]
    assert list(prompts.drawn) == [1, 4, 41, 43, 45]
