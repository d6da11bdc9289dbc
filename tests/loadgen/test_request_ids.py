"""No request id is given twice, whatever happens to the senders that share a load; gaps there may be."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Prompt
from servetop.loadgen.messages import SenderSetup, TimedCommand
from servetop.loadgen.sender.partition import Partition
from servetop.workload.stage_run import Due

LATER_TURN = Prompt(text="and then?", input_tokens=3, output_tokens=9)
MARGIN = 20
WORKERS = 4

teams = st.sets(st.integers(0, WORKERS - 1), min_size=1).map(lambda team: tuple(sorted(team)))
steps = st.one_of(
    st.tuples(st.just("arrivals"), st.integers(1, 9)),
    st.tuples(st.just("places"), st.lists(st.integers(0, 5), min_size=WORKERS, max_size=WORKERS)),
    st.tuples(st.just("turns"), st.lists(st.integers(0, 5), min_size=WORKERS, max_size=WORKERS)),
    st.tuples(st.just("deal"), teams),
)


def shares_of(num_turns: str) -> list[Partition]:
    workload = WorkloadConfig(input_len=6, num_turns=num_turns)
    return [
        Partition(SenderSetup(url="", model="", origin_ns=0, workload=workload, seed=0, worker=worker, workers=WORKERS))
        for worker in range(WORKERS)
    ]


def claim(share: Partition, due: Due, count: int) -> int:
    """A sender without a share opens no place; it may have turns of conversations left."""
    for _ in range(count if share.working or due.prompt is not None else 0):
        share.claim(due)
    return count if share.working or due.prompt is not None else 0


def ids_given(
    shares: list[Partition], step: str, what: int | list[int] | tuple[int, ...], *, talking: bool
) -> list[int]:
    """What one step of a load does, and the ids that it takes."""
    counts = [0] * len(shares)
    match step, what:
        case "arrivals", int():
            counts = [sum([share.takes(Due(0, 1.0)) for _ in range(what)]) for share in shares]
        case "places", list():
            counts = [claim(share, Due(0, 1.0), count) for share, count in zip(shares, what, strict=True)]
        case "turns", list() if talking:
            due = Due(0, 1.0, LATER_TURN)
            counts = [claim(share, due, count) for share, count in zip(shares, what, strict=True)]
        case "deal", tuple():
            reached = max(share.reached for share in shares)
            for share in shares:
                share.reform(TimedCommand(at=2.0, number_from=reached + MARGIN, active=what))
    return [share.number() for share, count in zip(shares, counts, strict=True) for _ in range(count)]


@given(load=st.lists(steps, max_size=25), num_turns=st.sampled_from(["", "3"]))
def test_no_id_is_given_twice_however_the_senders_are_dealt_anew(
    load: list[tuple[str, int | list[int] | tuple[int, ...]]], num_turns: str
) -> None:
    shares = shares_of(num_turns)
    given_out = [ids_given(shares, step, what, talking=bool(num_turns)) for step, what in load]
    ids = list(itertools.chain(*given_out))
    assert len(set(ids)) == len(ids)


def test_without_a_change_of_senders_the_ids_of_an_open_loop_have_no_gap() -> None:
    ids = ids_given(shares_of(""), "arrivals", 40, talking=False)
    assert sorted(ids) == list(range(40))
