"""The scheduling class of a sender: when it enters the real-time class, leaves it, and returns."""

import os
import sys
from typing import Any

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig
from servetop.core.system.scheduling import may_enter_real_time
from servetop.core.tick import TICK_SECONDS, LoadGauges, SenderClass
from servetop.loadgen.messages import SenderReport
from servetop.loadgen.sender.report_builder import ReportBuilder
from servetop.loadgen.sender.sender_priority import SenderPriority
from servetop.loadgen.worker.sender_handle import SenderHandle
from servetop.workload.stages.plan import LoadPhase, LoadPlan
from tests.loadgen.load_run import ARGV, setup_for

WITHOUT_THE_RIGHT = """
import ctypes, resource, sys
from servetop.run.process.sender_program import main
resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
libc, header, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capget(header, sets) == 0
sets[0] &= ~(1 << 23)  # CAP_SYS_NICE, of the effective set
assert libc.capset(header, sets) == 0
sys.exit(main())
"""
"""A sender process that gives up the right before it starts."""
BUSY, CALM = 0.8 * TICK_SECONDS, 0.1 * TICK_SECONDS


class FakeScheduler:
    """A system that permits the real-time class, or does not."""

    def __init__(self, *, permits: bool = True) -> None:
        self.permits = permits
        self.real_time = False

    def enter(self) -> bool:
        self.real_time = self.permits
        return self.permits

    def leave(self) -> None:
        self.real_time = False

    def priority(self, *, processors: int = 2, senders: int = 1) -> SenderPriority:
        return SenderPriority(processors=processors, senders=senders, enter=self.enter, leave=self.leave)


def test_a_sender_enters_the_class_when_its_load_begins() -> None:
    system = FakeScheduler()
    priority = system.priority()
    assert (priority.sender_class, system.real_time) == (None, False)
    priority.begin()
    assert (priority.sender_class, system.real_time) == (SenderClass.REAL_TIME, True)
    assert [priority.update(CALM) for _ in range(40)] == [""] * 40


def test_without_the_right_a_sender_stays_in_the_ordinary_class_whatever_it_needs() -> None:
    priority = FakeScheduler(permits=False).priority()
    priority.begin()
    assert [priority.update(BUSY) for _ in range(40)] == [""] * 40
    assert priority.sender_class is SenderClass.ORDINARY


def test_a_sender_that_needs_most_of_a_processor_for_a_second_leaves_the_class_and_says_so() -> None:
    system = FakeScheduler()
    priority = system.priority()
    priority.begin()
    assert [priority.update(BUSY) for _ in range(3)] == [""] * 3
    reason = "the sender left the real-time class: it needed 80% of a processor, at most 50% is left to it"
    assert priority.update(BUSY) == reason
    assert (priority.sender_class, system.real_time) == (SenderClass.LEFT, False)
    assert priority.update(BUSY) == ""


def test_a_short_burst_does_not_move_a_sender_out_of_the_class() -> None:
    priority = FakeScheduler().priority()
    priority.begin()
    used = [BUSY, BUSY, CALM, CALM] * 10
    assert [priority.update(each) for each in used] == [""] * 40
    assert priority.sender_class is SenderClass.REAL_TIME


@pytest.mark.parametrize(
    ("processors", "senders", "permitted"), [(64, 8, "50%"), (4, 2, "50%"), (2, 4, "25%"), (1, 1, "50%")]
)
def test_all_senders_together_are_permitted_half_of_the_processors(
    processors: int, senders: int, permitted: str
) -> None:
    priority = FakeScheduler().priority(processors=processors, senders=senders)
    priority.begin()
    reasons = {priority.update(BUSY) for _ in range(4)}
    assert {reason.rpartition(", ")[2] for reason in reasons} == {"", f"at most {permitted} is left to it"}


def test_a_sender_returns_to_the_class_after_five_calm_seconds() -> None:
    system = FakeScheduler()
    priority = system.priority()
    priority.begin()
    for _ in range(4):
        priority.update(BUSY)
    for _ in range(19):
        assert priority.update(CALM) == ""
        assert not system.real_time
    assert priority.update(CALM) == ""
    assert (priority.sender_class, system.real_time) == (SenderClass.REAL_TIME, True)


def test_a_sender_that_computes_without_a_pause_leaves_the_class_at_once() -> None:
    system = FakeScheduler()
    priority = system.priority()
    priority.begin()
    priority.computed_too_long()
    assert (priority.sender_class, system.real_time) == (SenderClass.LEFT, False)
    assert priority.update(CALM) == "the sender left the real-time class: it computed without a pause"


async def test_a_report_has_the_class_and_the_reason_for_leaving_it() -> None:
    priority = FakeScheduler().priority()
    builder = ReportBuilder(worker=0, priority=priority)
    builder.begin()
    priority.computed_too_long()
    report = builder.build(7, state=LoadPhase.RUNNING, gauges=LoadGauges(in_flight=3))
    assert report.tick.gauges == LoadGauges(in_flight=3, sender_class=SenderClass.LEFT)
    assert [(note.at, note.text[:39]) for note in report.notes] == [(2.0, "the sender left the real-time class: it")]


async def _classes(server: Any, argv: tuple[str, ...]) -> tuple[list[SenderReport], int]:
    """Play a short load in a sender process; return its reports, and its policy while it played."""
    clock = MonotonicClock()
    sender = await SenderHandle.start(argv, setup_for(server.url, clock))
    await sender.begin(LoadPlan(segments=((0, StageConfig(request_rate=50.0, num_prompts=5)),), begin=clock.now()))
    reports, policy = [], -1
    async for report in sender.reports():
        reports.append(report)
        if report.state is LoadPhase.FINISHED:
            policy = os.sched_getscheduler(sender.pid)
            break
    await sender.close()
    return reports, policy


@pytest.mark.skipif(sys.platform != "linux", reason="the class is Linux's")
async def test_a_sender_process_has_the_class_that_it_reports(server: Any) -> None:
    reports, policy = await _classes(server, ARGV)
    expected = SenderClass.REAL_TIME if may_enter_real_time() else SenderClass.ORDINARY
    assert reports[-1].tick.gauges.sender_class is expected
    assert (policy == os.SCHED_RR | os.SCHED_RESET_ON_FORK) is (expected is SenderClass.REAL_TIME)


@pytest.mark.skipif(sys.platform != "linux", reason="the class is Linux's")
async def test_a_sender_process_without_the_right_plays_its_load(server: Any) -> None:
    reports, policy = await _classes(server, (sys.executable, "-c", WITHOUT_THE_RIGHT))
    assert reports[-1].tick.gauges.sender_class is SenderClass.ORDINARY
    assert policy == os.SCHED_OTHER
    assert sum(report.tick.ok for report in reports) == 5
