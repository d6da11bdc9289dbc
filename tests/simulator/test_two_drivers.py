"""Virtual time and real time make the same decisions for the same arrivals; disconnected clients free their blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from servetop.simulator.model.sim_request import SimRequest, SimSequence
from servetop.simulator.predict.cell_clients import OpenLoop
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.simulator.scheduling.scheduler import Scheduler
from servetop.simulator.server.realtime import RealTimeEngine

POLICIES = ("recompute", "swap", "inflight", "chunked", "reserve", "static", "dynamic")
MANY = settings(max_examples=200, deadline=None)


@dataclass
class TokenTimes:
    """A sink that records the times of its tokens."""

    clock: SteppedClock
    times: list[float] = field(default_factory=list)
    complete: bool = False

    def token(self, *, last: bool) -> None:
        self.times.append(self.clock.now)
        self.complete = last


@dataclass
class SteppedClock:
    """A clock that the test advances, and that wakes the engine at the scheduled times."""

    now: float = 0.0
    alarm: float = math.inf

    def wake_at(self, at: float) -> None:
        self.alarm = at

    def advance_to(self, until: float, engine: RealTimeEngine) -> None:
        self._wake_until(math.nextafter(until, math.inf), engine)
        if until < math.inf:
            self.now = until

    def advance_before(self, until: float, engine: RealTimeEngine) -> None:
        """Stop before events due at that time: as in virtual time, an arrival at that time comes first."""
        self._wake_until(until, engine)
        self.now = until

    def _wake_until(self, before: float, engine: RealTimeEngine) -> None:
        while self.alarm < before:
            self.now, self.alarm = max(self.now, self.alarm), math.inf
            engine.wake()


class IgnoredEvents:
    """An event receiver that ignores all events."""

    def stepped(self, tokens: int) -> None: ...
    def emitted(self, count: int, *, due: float) -> None: ...
    def first(self, seq: SimSequence, at: float) -> None: ...
    def gap(self, seconds: float, count: int) -> None: ...
    def finished(self, seq: SimSequence, at: float) -> None: ...


def scheduler(policy: str, kv_blocks: int, max_num_seqs: int) -> Scheduler:
    keys = {"policy": policy, "kv_blocks": kv_blocks, "max_num_seqs": max_num_seqs, "batch_timeout": 0.05}
    keys |= {"max_num_batched_tokens": 64, "block_size": 4}
    return build_scheduler(sim_spec("opt-125m", gpu="a100-40", engine="vllm-0.2.1", settings=keys))


def real_time(core: Scheduler) -> tuple[RealTimeEngine, SteppedClock]:
    clock = SteppedClock()
    return RealTimeEngine(core, clock=lambda: clock.now, wake_at=clock.wake_at, events=IgnoredEvents()), clock


lengths = st.builds(SimRequest, st.integers(1, 30), st.integers(1, 30), st.just(0), st.just(()))
gaps = st.floats(1e-6, 0.08)
ARRIVAL_AT_BATCH_START = [(0.0625, SimRequest(1, 1, 0, ())), (0.05, SimRequest(1, 1, 0, ()))]
"""The second request arrives at the very time at which the batch of the first would start without it."""
loads = st.lists(st.tuples(gaps, lengths), min_size=1, max_size=20)


@given(st.sampled_from(POLICIES), st.integers(15, 60), st.integers(1, 8), loads)
@example("dynamic", 15, 2, ARRIVAL_AT_BATCH_START)
@MANY
def test_virtual_and_real_time_make_the_same_decisions(
    policy: str, kv_blocks: int, limit: int, load: list[tuple[float, SimRequest]]
) -> None:
    times = [sum(gap for gap, _ in load[: index + 1]) for index in range(len(load))]
    requests = [request for _, request in load]
    virtual = VirtualEngine(scheduler(policy, kv_blocks, limit))
    virtual.run(OpenLoop(requests, times))
    engine, clock = real_time(scheduler(policy, kv_blocks, limit))
    sinks = [TokenTimes(clock) for _ in requests]
    taken = []
    for at, request, sink in zip(times, requests, sinks, strict=True):
        clock.advance_before(at, engine)
        taken.append(engine.submit(request, sink))
    clock.advance_to(math.inf, engine)
    served = [seq for seq in taken if seq is not None]
    assert [(seq.scheduled_at, seq.finished_at, seq.preemptions) for seq in served] == [
        (seq.scheduled_at, seq.finished_at, seq.preemptions) for seq in virtual.usage.sequences
    ]
    assert engine.scheduler.preemptions == virtual.scheduler.preemptions
    for seq, sink in zip(taken, sinks, strict=True):
        assert sink.complete is (seq is not None)
        assert seq is None or len(sink.times) == seq.output_tokens


@given(st.sampled_from(POLICIES), loads, st.data())
@MANY
def test_disconnected_clients_free_their_blocks_and_do_not_affect_others(
    policy: str, load: list[tuple[float, SimRequest]], data: st.DataObject
) -> None:
    engine, clock = real_time(scheduler(policy, 40, 6))
    at, staying = 0.0, []
    for gap, request in load:
        at += gap
        clock.advance_to(at, engine)
        sink = TokenTimes(clock)
        seq = engine.submit(request, sink)
        if seq is not None and data.draw(st.booleans(), label="leaves"):
            clock.advance_to(at + data.draw(st.floats(0.0, gap), label="stays for"), engine)
            if seq.finished_at is None:
                engine.drop(seq)
        elif seq is not None:
            staying.append((seq, sink))
    clock.advance_to(math.inf, engine)
    assert engine.scheduler.blocks.used == 0
    assert engine.scheduler.unfinished == 0
    assert all(sink.complete and len(sink.times) == seq.output_tokens for seq, sink in staying)


def test_a_dropped_request_is_removed_at_the_next_iteration_boundary() -> None:
    engine, clock = real_time(scheduler("recompute", 60, 8))
    long = engine.submit(SimRequest(10, 30), TokenTimes(clock))
    clock.advance_to(0.005, engine)
    assert long is not None
    assert engine.scheduler.blocks.used > 0
    engine.drop(long)
    clock.advance_to(clock.alarm, engine)
    assert engine.scheduler.blocks.used == 0


def test_a_smaller_batch_limit_keeps_running_requests_and_admits_no_more() -> None:
    engine, clock = real_time(scheduler("recompute", 60, 8))
    for _ in range(6):
        engine.submit(SimRequest(4, 20), TokenTimes(clock))
    clock.advance_to(0.005, engine)
    assert engine.scheduler.running == 6
    engine.set_max_num_seqs(2)
    late = TokenTimes(clock)
    engine.submit(SimRequest(4, 2), late)
    clock.advance_to(0.006, engine)
    assert engine.scheduler.running == 6
    assert not late.times
    clock.advance_to(math.inf, engine)
    assert late.complete


def test_tokens_are_due_at_their_deadlines_when_the_engine_was_delayed() -> None:
    engine, clock = real_time(scheduler("recompute", 60, 8))
    undisturbed = VirtualEngine(scheduler("recompute", 60, 8))
    undisturbed.run(OpenLoop([SimRequest(8, 20)], [0.0]))
    seq = engine.submit(SimRequest(8, 20), TokenTimes(clock))
    clock.now = 0.006
    clock.advance_to(math.inf, engine)
    assert seq is not None
    assert seq.finished_at == undisturbed.usage.sequences[0].finished_at
