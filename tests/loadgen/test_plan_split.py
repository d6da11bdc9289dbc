"""A plan split for several senders: where, and how its requests are divided."""

from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import StageConfig
from servetop.loadgen.worker.plan_split import split_plan, subplan_for
from servetop.workload.stages.plan import LoadPlan


@given(
    count=st.integers(1, 60),
    slots=st.integers(1, 12),
    workers=st.integers(1, 5),
    first=st.integers(0, 20),
    warmup=st.booleans(),
)
def test_the_requests_of_a_closed_loop_are_divided_without_remainder(
    count: int, slots: int, workers: int, first: int, warmup: bool
) -> None:
    stage = StageConfig(max_concurrency=slots, num_prompts=count, warmup=warmup)
    plan = LoadPlan(segments=((0, stage),), begin=0.0, first_number=first)
    parts = [subplan_for(plan, worker, range(workers)) for worker in range(workers)]
    assert sum(part.segments[0][1].num_prompts or 0 for part in parts if part) == count
    assert all(part is None for part in parts[slots:])


def test_a_plan_is_split_where_no_single_sender_can_determine_when_to_continue() -> None:
    warmup = StageConfig(max_concurrency=8, num_prompts=4, warmup=True)
    open_loop, closed = StageConfig(request_rate=4.0, duration=1.0), StageConfig(max_concurrency=2, duration=1.0)
    plan = LoadPlan(segments=tuple(enumerate([warmup, open_loop, open_loop, closed, open_loop])), begin=0.0)
    assert [[index for index, _ in subplan.segments] for subplan in split_plan(plan)] == [[0], [1, 2, 3], [4]]
    assert [subplan.followed_by for subplan in split_plan(plan)] == [4, 1, 0]
