"""Invariants of every schedule: tokens, blocks, order, rejections (random engines, random loads)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.simulator.model.sim_request import SimRequest
from servetop.simulator.predict.cell_clients import OpenLoop
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.simulator.scheduling.scheduler import Scheduler

PREEMPTING = ("recompute", "swap", "inflight", "chunked")
RESERVING = ("reserve", "inflight-reserve", "splitfuse")
WHOLE_BATCH = ("static", "dynamic", "no-batching")
MANY = settings(max_examples=100, deadline=None)


@dataclass(frozen=True)
class Case:
    """One small engine and its load."""

    policy: str
    kv_blocks: int
    block_size: int
    max_num_seqs: int
    batched_tokens: int
    watermark: float
    slack: int
    requests: tuple[SimRequest, ...]
    times: tuple[float, ...]

    def scheduler(self) -> Scheduler:
        keys = {
            "policy": self.policy,
            "kv_blocks": self.kv_blocks,
            "block_size": self.block_size,
            "max_num_seqs": self.max_num_seqs,
            "max_num_batched_tokens": self.batched_tokens,
            "watermark": self.watermark,
            "decode_slack": self.slack,
            "batch_timeout": 0.05,
        }
        return build_scheduler(sim_spec("opt-125m", gpu="a100-40", engine="vllm-0.2.1", settings=keys))

    def run(self, stride: int | None = None) -> VirtualEngine:
        engine = VirtualEngine(self.scheduler(), stride=stride)
        engine.run(OpenLoop(self.requests, self.times))
        return engine


@st.composite
def cases(draw: st.DrawFn, policies: tuple[str, ...] = (*PREEMPTING, *RESERVING, *WHOLE_BATCH)) -> Case:
    lengths = st.builds(SimRequest, st.integers(1, 60), st.integers(1, 40), st.just(0), st.just(()))
    requests = draw(st.lists(lengths, min_size=1, max_size=25))
    gaps = draw(
        st.lists(st.sampled_from((0.0, 0.0, 0.001, 0.013, 0.2)), min_size=len(requests), max_size=len(requests))
    )
    times = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    return Case(
        policy=draw(st.sampled_from(policies)),
        kv_blocks=draw(st.integers(4, 60)),
        block_size=draw(st.sampled_from((1, 4, 16))),
        max_num_seqs=draw(st.integers(1, 12)),
        batched_tokens=draw(st.sampled_from((16, 64, 256))),
        watermark=draw(st.sampled_from((0.0, 0.01, 0.1))),
        slack=draw(st.sampled_from((0, 1))),
        requests=tuple(requests),
        times=tuple(times),
    )


def timeline(engine: VirtualEngine) -> list[tuple[object, ...]]:
    return [
        (seq.index, seq.scheduled_at, seq.first_token_at, seq.finished_at, seq.preemptions, seq.generated)
        for seq in engine.usage.sequences
    ]


def pooled_gaps(engine: VirtualEngine) -> dict[float, int]:
    pooled: dict[float, int] = {}
    for first, growth, count, weight in engine.usage.gaps:
        for index in range(count):
            gap = first + growth * index
            pooled[gap] = pooled.get(gap, 0) + weight
    return pooled


@given(cases())
@MANY
def test_closed_form_steps_give_exactly_the_results_of_single_steps(case: Case) -> None:
    leaping, stepping = case.run(), case.run(stride=1)
    assert timeline(leaping) == timeline(stepping)
    assert leaping.scheduler.preemptions == stepping.scheduler.preemptions
    assert leaping.scheduler.recomputed_tokens == stepping.scheduler.recomputed_tokens
    assert leaping.scheduler.blocks.peak == stepping.scheduler.blocks.peak
    assert leaping.now == stepping.now
    ours, theirs = pooled_gaps(leaping), pooled_gaps(stepping)
    assert sum(ours.values()) == sum(theirs.values())
    assert math.isclose(sum(g * n for g, n in ours.items()), sum(g * n for g, n in theirs.items()), abs_tol=1e-9)


@given(cases())
@MANY
def test_every_accepted_request_finishes_exactly_once_with_all_its_tokens(case: Case) -> None:
    engine = case.run()
    usage = engine.usage
    assert sorted(seq.index for seq in usage.finished) == sorted(seq.index for seq in usage.sequences)
    assert len(usage.sequences) + usage.refused == len(case.requests)
    assert all(seq.generated == seq.output_tokens for seq in usage.finished)
    gaps = sum(count * weight for _, _, count, weight in usage.gaps)
    if case.policy not in WHOLE_BATCH:
        assert gaps == sum(seq.output_tokens - 1 for seq in usage.finished)


@given(cases())
@MANY
def test_all_blocks_are_free_at_the_end_and_times_are_in_order(case: Case) -> None:
    engine = case.run()
    assert engine.scheduler.blocks.used == 0
    assert engine.scheduler.unfinished == 0
    for seq in engine.usage.finished:
        assert seq.scheduled_at is not None
        assert seq.first_token_at is not None
        assert seq.finished_at is not None
        assert seq.arrival <= seq.scheduled_at < seq.first_token_at <= seq.finished_at


@given(cases(policies=("recompute", "swap", "inflight", "chunked")))
@MANY
def test_sequences_hold_exactly_the_blocks_of_their_written_tokens_and_the_newest_go_first(case: Case) -> None:
    engine = VirtualEngine(case.scheduler(), stride=1)
    scheduler = engine.scheduler
    engine.offer(0.0, case.requests, OpenLoop((), ()))
    while (work := scheduler.plan(engine.now)) is not None:
        running = {*scheduler.batch.members, *scheduler.prefilling}
        assert not scheduler.preempted or min(seq.index for seq in scheduler.preempted) > max(running)
        engine.now += work.elapsed(1)
        scheduler.complete(work, 1, now=engine.now)
        batch = scheduler.batch
        written = sum(-(-(batch.length_of(seq) - 1) // case.block_size) for seq in batch.members.values())
        started = sum(-(-seq.length // case.block_size) for seq in scheduler.prefilling.values())
        assert scheduler.blocks.used == written + started <= case.kv_blocks
        assert batch.context == sum(batch.length_of(seq) for seq in batch.members.values())
        assert scheduler.running <= case.max_num_seqs
    assert scheduler.unfinished == 0


@given(cases(policies=("recompute", "swap", "reserve", "inflight", "inflight-reserve", "chunked")), st.integers(1, 30))
@MANY
def test_equal_requests_finish_first_come_first_served_even_under_preemption(case: Case, output: int) -> None:
    equal = tuple(SimRequest(20, output) for _ in case.requests)
    engine = Case(**{**case.__dict__, "requests": equal}).run()
    order = [seq.index for seq in engine.usage.finished]
    assert order == sorted(order)


@given(cases(policies=(*RESERVING, *WHOLE_BATCH)))
@MANY
def test_reservation_never_preempts(case: Case) -> None:
    assert case.run().scheduler.preemptions == 0


@given(cases(policies=PREEMPTING))
@MANY
def test_nothing_is_preempted_when_the_largest_batch_fits(case: Case) -> None:
    longest = max(request.prompt_tokens + request.output_tokens - 1 for request in case.requests)
    blocks = case.max_num_seqs * -(-longest // case.block_size) + 1
    roomy = Case(**{**case.__dict__, "kv_blocks": blocks, "watermark": 0.0})
    assert roomy.run().scheduler.preemptions == 0


@given(cases())
@MANY
def test_exactly_the_requests_that_an_empty_engine_cannot_hold_are_refused(case: Case) -> None:
    kept = case.kv_blocks - (int(case.watermark * case.kv_blocks) if case.policy in PREEMPTING else 0)
    kept -= case.policy == "swap"
    needs = [-(-(each.prompt_tokens + each.output_tokens - 1) // case.block_size) for each in case.requests]
    assert case.run().usage.refused == sum(need > kept for need in needs)


@given(cases())
@MANY
def test_the_same_case_gives_the_same_run(case: Case) -> None:
    assert timeline(case.run()) == timeline(case.run())


@given(cases())
@MANY
def test_littles_law_holds_for_counts_and_times(case: Case) -> None:
    usage = case.run().usage
    timed = sum((seq.finished_at or 0.0) - seq.arrival for seq in usage.finished)
    if not usage.refused:
        assert math.isclose(usage.unfinished_seconds, timed, rel_tol=1e-6, abs_tol=1e-9)
