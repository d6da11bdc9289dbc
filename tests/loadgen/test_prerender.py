"""Requests are rendered ahead of their due times, in order, and skipped prompts are not sent."""

import dataclasses
import itertools
from collections.abc import Iterator

from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.interfaces.dialect import Prompt
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.request.prerender import LOOK_AHEAD, NumberedPrompts, NumberedRequest, PrerenderQueue
from servetop.loadgen.sender.partition import RequestPartition
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.stage_run import Due

DUE = Due(0, 1.0)
PLAN = LoadPlan(segments=((0, StageConfig(num_prompts=1)),), begin=0.0)


class StillClock(MonotonicClock):
    def now(self) -> float:
        return 5.0


def prompts(*, clipped: bool = False) -> NumberedPrompts:
    for number in itertools.count():
        yield number, Prompt(text=f"p{number}", input_tokens=1, output_tokens=2, clipped=clipped)


class PlainPrompts:
    def prompts(self) -> Iterator[Prompt]:
        return (prompt for _, prompt in prompts())


def queue_of(numbered: NumberedPrompts, *, skipped: SkippedRows | None = None, **workload: object) -> PrerenderQueue:
    config = dataclasses.replace(WorkloadConfig(), **workload)  # type: ignore[arg-type]
    dialect = dialect_for("completions", model="m", continuous_usage=False)
    queue = PrerenderQueue(lambda _: numbered, dialect, config, skipped=skipped or SkippedRows())
    queue.begin(PLAN)
    return queue


def test_requests_are_taken_in_order_whether_or_not_they_are_ready() -> None:
    queue, rendered = queue_of(prompts()), list[None]()
    queue.fill(StillClock(), stage=0, wanted=lambda: True, between=lambda: rendered.append(None))
    assert len(rendered) == LOOK_AHEAD
    requests = [queue.take(NumberedRequest(number, DUE, number), limited=False) for number in range(LOOK_AHEAD + 2)]
    assert [request.prompt.text for request in requests] == [f"p{number}" for number in range(LOOK_AHEAD + 2)]
    assert [request.id for request in requests] == list(range(LOOK_AHEAD + 2))


def test_a_sender_whose_requests_end_while_it_renders_stops() -> None:
    partition = RequestPartition(SenderSetup(url="", model="", origin_ns=0, worker=2, workers=3))
    queue = queue_of(partition.prompts(PlainPrompts()))
    two_slots = 2  # a stage with fewer slots than senders begins
    queue.fill(StillClock(), stage=0, wanted=lambda: partition.working, between=lambda: partition.limit_for(two_slots))
    assert not partition.working


def test_prompts_of_unused_numbers_are_skipped() -> None:
    queue = queue_of(prompts())
    assert [queue.take(NumberedRequest(9, DUE, number), limited=True).prompt.text for number in (2, 3, 7)] == [
        "p2", "p3", "p7",
    ]  # fmt: skip


def test_a_later_turn_brings_its_own_prompt() -> None:
    queue = queue_of(prompts())
    turn = Prompt(text="and then?", input_tokens=3, output_tokens=9)
    assert queue.take(NumberedRequest(0, Due(0, 1.0, turn)), limited=False).prompt is turn
    assert queue.take(NumberedRequest(1, DUE), limited=False).prompt.text == "p0"


def test_clipped_prompts_are_counted() -> None:
    skipped = SkippedRows()
    queue = queue_of(prompts(clipped=True), skipped=skipped)
    queue.take(NumberedRequest(0, DUE), limited=False)
    assert skipped.clipped == 1


def test_the_token_limit_is_unknown_if_the_extra_body_changes_it() -> None:
    known, unknown = queue_of(prompts(), n=2), queue_of(prompts(), extra_body={"max_tokens": 3})
    assert known.take(NumberedRequest(0, DUE), limited=False).max_tokens == 4
    assert unknown.take(NumberedRequest(0, DUE), limited=False).max_tokens == 0


def test_a_new_salt_alters_requests_that_are_ready_and_those_rendered_later() -> None:
    queue = queue_of(prompts())
    queue.fill(StillClock(), stage=0, wanted=lambda: True, between=lambda: None)
    queue.begin(dataclasses.replace(PLAN, prompt_salt=5))
    salted = [queue.take(NumberedRequest(number, DUE, number), limited=False) for number in range(LOOK_AHEAD + 2)]
    assert all(request.prompt.text != f"p{request.id}" and len(request.prompt.text) > 1 for request in salted)
    assert all(request.prompt.text.encode() in request.body for request in salted)
    queue.begin(PLAN)
    after = queue.take(NumberedRequest(100, DUE, 100), limited=False)
    assert after.prompt.text == "p100"
