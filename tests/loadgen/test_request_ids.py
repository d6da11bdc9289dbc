"""No request id is used twice, whatever happens to the senders that share a load; ids may be skipped."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Prompt
from servetop.loadgen.messages import SenderSetup, TimedCommand
from servetop.loadgen.request.prerender import NumberedRequest
from servetop.loadgen.sender.partition import RequestPartition, partition_for
from servetop.workload.stages.stage_run import Due

LATER_TURN = Prompt(text="and then?", input_tokens=3, output_tokens=9)
MARGIN = 20
WORKERS = 4

active_senders = st.sets(st.integers(0, WORKERS - 1), min_size=1).map(lambda active: tuple(sorted(active)))
steps = st.one_of(
    st.tuples(st.just("arrivals"), st.integers(1, 9)),
    st.tuples(st.just("slots"), st.lists(st.integers(0, 5), min_size=WORKERS, max_size=WORKERS)),
    st.tuples(st.just("turns"), st.lists(st.integers(0, 5), min_size=WORKERS, max_size=WORKERS)),
    st.tuples(st.just("activate"), active_senders),
)


def partitions_of(num_turns: str) -> list[RequestPartition]:
    workload = WorkloadConfig(input_len=6, num_turns=num_turns)
    setups = [
        SenderSetup(url="", model="", origin_ns=0, workload=workload, worker=worker, workers=WORKERS)
        for worker in range(WORKERS)
    ]
    return [each for each in map(partition_for, setups) if isinstance(each, RequestPartition)]


def claim(partition: RequestPartition, due: Due, count: int) -> list[NumberedRequest]:
    """A sender on standby has no user slot; it may have turns of conversations left."""
    allowed = partition.working or due.prompt is not None
    return [partition.claim(due) for _ in range(count if allowed else 0)]


def ids_used(
    partitions: list[RequestPartition], step: str, what: int | list[int] | tuple[int, ...], *, conversational: bool
) -> list[int]:
    """Apply one step of a load and return the ids that it uses."""
    due, turn = Due(0, 1.0), Due(0, 1.0, LATER_TURN)
    requests: list[NumberedRequest | None] = []
    match step, what:
        case "arrivals", int():
            requests = [each.select(due) for each in partitions for _ in range(what)]
        case "slots", list():
            pairs = zip(partitions, what, strict=True)
            requests = [request for each, count in pairs for request in claim(each, due, count)]
        case "turns", list() if conversational:
            pairs = zip(partitions, what, strict=True)
            requests = [request for each, count in pairs for request in claim(each, turn, count)]
        case "activate", tuple():
            number_from = max(each.next_number for each in partitions) + MARGIN
            for each in partitions:
                each.apply(TimedCommand(at=2.0, number_from=number_from, active=what))
    return [request.number for request in requests if request is not None]


@given(load=st.lists(steps, max_size=25), num_turns=st.sampled_from(["", "3"]))
def test_no_id_is_used_twice_however_the_active_senders_change(
    load: list[tuple[str, int | list[int] | tuple[int, ...]]], num_turns: str
) -> None:
    partitions = partitions_of(num_turns)
    used = [ids_used(partitions, step, what, conversational=bool(num_turns)) for step, what in load]
    ids = list(itertools.chain(*used))
    assert len(set(ids)) == len(ids)


def test_while_the_active_senders_stay_the_same_the_ids_of_an_open_loop_have_no_gap() -> None:
    ids = ids_used(partitions_of(""), "arrivals", 40, conversational=False)
    assert sorted(ids) == list(range(40))
