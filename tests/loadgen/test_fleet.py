"""Several senders, each a real process: together they are one load, and they outlive each other."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import LoadError
from servetop.core.events import Action, Command, RequestRecord, RequestStatus
from servetop.core.tick import LoadGauges, merge_client_ticks
from servetop.loadgen.fleet import SenderFleet
from servetop.loadgen.merging import LOST
from servetop.loadgen.messages import SenderReport, SenderSetup, SenderState
from servetop.loadgen.plan import LoadPlan
from servetop.loadgen.process import SenderProcess
from servetop.loadgen.senders import start_senders

ARGV = (sys.executable, "-m", "servetop.cli.sender")


def setup_for(url: str, clock: MonotonicClock, **workload: Any) -> SenderSetup:
    given = WorkloadConfig(**{"input_len": 5, "output_len": 3, **workload})
    return SenderSetup(
        url=url, model="m", origin_ns=clock.origin_ns, workload=given, continuous_usage=True, seed=3, first_id=100
    )


@dataclass(eq=False)
class FleetRun:
    """A fleet at work, and what it reported."""

    fleet: SenderFleet
    clock: MonotonicClock
    reports: list[SenderReport] = field(default_factory=list)
    _commands: int = 0

    def __post_init__(self) -> None:
        self._stream = self.fleet.reports()

    async def begin(self, *stages: StageConfig, first: int = 0, drain: bool = False) -> None:
        segments = tuple(enumerate(stages, start=first))
        await self.fleet.begin(LoadPlan(segments=segments, begin=0.0, drain_at_stages=drain, drain_timeout=5.0))

    async def tell(self, action: Action, value: float | None = None) -> None:
        self._commands += 1
        await self.fleet.command(Command(id=self._commands, at=0.0, action=action, value=value))

    async def until(self, condition: Callable[[SenderReport], object], *, seconds: float = 20.0) -> None:
        async with asyncio.timeout(seconds):
            async for report in self._stream:
                self.reports.append(report)
                if condition(report):
                    return
        raise AssertionError("the fleet fell silent")

    async def finish(self) -> None:
        await self.until(lambda report: report.state is SenderState.FINISHED)

    @property
    def records(self) -> list[RequestRecord]:
        return sorted((record for report in self.reports for record in report.records), key=lambda each: each.id)

    @property
    def gauges(self) -> list[LoadGauges]:
        return [report.tick.gauges for report in self.reports]

    @property
    def replies(self) -> list[str | None]:
        return [reply.reply for report in self.reports for reply in report.replies]

    @property
    def notes(self) -> list[str]:
        return [note.text for report in self.reports for note in report.notes]


@pytest.fixture
async def fleet(server: Any) -> AsyncIterator[Callable[..., Any]]:
    """`await fleet(3, at_work=1, input_len=9)`."""
    runs: list[FleetRun] = []

    async def started(workers: int, *, at_work: int = 0, url: str = "", **workload: Any) -> FleetRun:
        clock = MonotonicClock()
        setup = setup_for(url or server.url, clock, **workload)
        runs.append(FleetRun(await SenderFleet.start(ARGV, setup, workers=workers, at_work=at_work), clock))
        return runs[-1]

    yield started
    for run in runs:
        await run.fleet.close()


async def answer_never(request: Any) -> None:
    await request.raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    await request.token(1)
    await asyncio.Event().wait()


async def test_two_and_three_senders_send_the_requests_of_one_at_its_times(server: Any, fleet: Any) -> None:
    stages = (StageConfig(request_rate=60.0, duration=0.5), StageConfig(request_rate=100.0, num_prompts=40))
    plays = []
    for workers in (1, 2, 3):
        before = len(server.served)
        run = await fleet(workers)
        await run.begin(*stages)
        await run.finish()
        began = run.reports and min(stage.at for report in run.reports for stage in report.stages)
        requests = [(record.id, record.stage, round(record.due - began, 6)) for record in run.records]
        prompts = {str(request.content["prompt"]) for request in server.served[before:]}
        plays.append((requests, prompts))
        assert {record.worker for record in run.records} == set(range(workers))
        assert all(record.status is RequestStatus.OK for record in run.records)
        assert [stage.index for report in run.reports for stage in report.stages] == [0, 1]
    assert plays[0] == plays[1] == plays[2]
    assert plays[0][0][0][0] == 100


async def test_ticks_of_several_senders_are_one_tick_each_and_add_up(fleet: Any) -> None:
    run = await fleet(2)
    await run.begin(StageConfig(request_rate=80.0, num_prompts=40))
    await run.finish()
    ticks = [report.tick for report in run.reports]
    assert [tick.index for tick in ticks] == list(range(ticks[0].index, ticks[-1].index + 1))
    total = merge_client_ticks(ticks, gauges=ticks[-1].gauges)
    assert (total.due, total.sent, total.ok, total.output_tokens) == (40, 40, 40, 120)
    assert total.ttft.count == 40
    assert {gauges.request_rate for gauges in run.gauges} == {None, 80.0}


async def test_concurrency_is_never_above_the_limit_in_sum_and_reaches_it(server: Any, fleet: Any) -> None:
    server.script = slow_tokens
    run = await fleet(3)
    await run.begin(StageConfig(max_concurrency=5, num_prompts=32))
    await run.finish()
    assert server.most_active == 5
    assert len(run.records) == 32
    assert len({record.id for record in run.records}) == 32
    assert max(gauges.max_concurrency or 0 for gauges in run.gauges) == 5


async def slow_tokens(request: Any) -> None:
    await request.raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    await request.tokens(2, gap=0.03)
    await request.end()


async def test_a_limit_below_the_number_of_senders_leaves_the_surplus_idle(server: Any, fleet: Any) -> None:
    server.script = slow_tokens
    run = await fleet(3)
    await run.begin(StageConfig(max_concurrency=1, num_prompts=4), StageConfig(max_concurrency=2, num_prompts=4))
    await run.finish()
    assert server.most_active == 2
    workers = [{record.worker for record in run.records if record.stage == stage} for stage in (0, 1)]
    assert workers == [{0}, {0, 1}]
    assert len({record.id for record in run.records}) == 8


async def test_a_new_limit_is_the_whole_fleets(server: Any, fleet: Any) -> None:
    server.script = slow_tokens
    run = await fleet(3)
    await run.begin(StageConfig(max_concurrency=2, duration=60.0))
    await run.until(lambda report: report.tick.ok)
    await run.tell(Action.SET_CONCURRENCY, 7)
    await run.until(lambda report: report.tick.gauges.in_flight == 7)
    await run.tell(Action.SET_CONCURRENCY, 1)
    await run.until(lambda report: report.tick.gauges.in_flight == 1 and report.tick.gauges.max_concurrency == 1)
    await run.tell(Action.CANCEL)
    await run.finish()
    assert run.replies == ["at most 7 requests at once", "at most 1 requests at once", "1 requests cancelled"]
    assert server.most_active == 7
    assert len({record.id for record in run.records}) == len(run.records)


async def test_a_loop_is_closed_and_opened_by_all(server: Any, fleet: Any) -> None:
    server.script = slow_tokens
    run = await fleet(3)
    await run.begin(StageConfig(request_rate=20.0, duration=60.0))
    await run.until(lambda report: report.tick.ok)
    await run.tell(Action.CLOSE_LOOP, 5)
    await run.until(lambda report: report.tick.gauges.in_flight == report.tick.gauges.max_concurrency == 5)
    await run.tell(Action.OPEN_LOOP, 30.0)
    await run.until(lambda report: report.tick.gauges.request_rate == 30.0 and report.tick.gauges.in_flight > 5)
    await run.tell(Action.CANCEL)
    await run.finish()
    assert run.replies[:2] == [
        "closed loop: 5 requests at once, each sent when another ends",
        "open loop: sending 30 requests/s, whatever is in flight",
    ]
    assert len({record.id for record in run.records}) == len(run.records)


async def test_a_stage_whose_number_of_requests_is_shared_out_keeps_its_loop(fleet: Any) -> None:
    run = await fleet(2)
    await run.begin(StageConfig(request_rate=5.0, num_prompts=100))
    await run.until(lambda report: report.tick.sent)
    for action, value in ((Action.CLOSE_LOOP, 4), (Action.OPEN_LOOP, 8.0), (Action.CANCEL, None)):
        await run.tell(action, value)
        await run.until(lambda report: report.replies)
    await run.finish()
    assert run.replies[0].endswith("shared out among several senders: its loop stays as it is")
    assert run.replies[1] == "open loop: sending 8 requests/s, whatever is in flight"


async def test_commands_are_obeyed_by_all_as_of_one_instant_and_answered_in_one_line(fleet: Any) -> None:
    run = await fleet(2)
    await run.begin(StageConfig(request_rate=20.0, duration=60.0), StageConfig(request_rate=20.0, duration=60.0))
    await run.until(lambda report: report.tick.sent)
    await run.tell(Action.SET_RATE, 100.0)
    await run.until(lambda report: report.replies)
    await run.tell(Action.BURST, 7)
    await run.until(lambda report: report.replies)
    await run.tell(Action.NEXT_STAGE)
    await run.until(lambda report: report.stages)
    await run.tell(Action.PAUSE_LOAD)
    await run.until(lambda report: report.tick.gauges.paused and not report.tick.sent)
    await run.tell(Action.STOP)
    await run.finish()
    assert run.replies[:3] == ["sending 100 requests/s", "7 requests now", "stage ended, 1 to come"]
    dues = [record.due for record in run.records]
    (burst,) = {due for due in dues if dues.count(due) == 7}
    assert {record.worker for record in run.records if record.due == burst} == {0, 1}
    assert [record.id for record in run.records] == list(range(100, 100 + len(run.records)))


async def test_a_stop_waits_for_all_and_counts_them_in_one_reply(server: Any, fleet: Any) -> None:
    server.script = answer_never
    run = await fleet(2)
    await run.begin(StageConfig(request_rate=200.0, num_prompts=9))
    await run.until(lambda report: report.tick.gauges.in_flight == 9)
    await run.tell(Action.STOP)
    await run.until(lambda report: report.replies)
    await run.tell(Action.CANCEL)
    await run.finish()
    assert run.replies == ["sending nothing more, waiting for 9 requests in flight", "9 requests cancelled"]
    assert {record.status for record in run.records} == {RequestStatus.CANCELLED}


async def test_the_next_stage_waits_for_the_slowest_sender_where_stages_drain(server: Any, fleet: Any) -> None:
    server.script = slow_tokens
    run = await fleet(2)
    stage = StageConfig(request_rate=50.0, num_prompts=10)
    await run.begin(stage, stage, drain=True)
    await run.finish()
    first, second = ([record for record in run.records if record.stage == index] for index in (0, 1))
    assert (len(first), len(second)) == (10, 10)
    assert max(record.done_at or 0 for record in first) < min(record.due for record in second)
    assert [record.id for record in run.records] == list(range(100, 120))


async def test_a_fleet_plays_one_plan_after_the_other(fleet: Any) -> None:
    run = await fleet(2)
    await run.begin(StageConfig(max_concurrency=2, num_prompts=6))
    await run.finish()
    await run.begin(StageConfig(request_rate=50.0, num_prompts=5), first=1)
    await run.until(lambda report: report.state is SenderState.FINISHED and report.tick.gauges.stage == 1)
    assert [record.id for record in run.records] == list(range(100, 111))


async def test_the_same_requests_are_broken_off_however_many_senders_there_are(server: Any, fleet: Any) -> None:
    server.script = answer_never
    quitters = []
    for workers in (1, 2):
        run = await fleet(workers, cancel_fraction=0.5, output_len=1)
        await run.begin(StageConfig(request_rate=100.0, num_prompts=12))
        await run.until(lambda report: report.tick.sent)
        await run.until(lambda report: report.state is SenderState.DRAINING and not report.tick.cancelled)
        quitters.append([record.id for record in run.records])
    assert quitters[0] == quitters[1]
    assert 1 < len(quitters[0]) < 11


async def test_a_sender_that_is_killed_takes_its_requests_along_and_the_others_go_on(server: Any, fleet: Any) -> None:
    server.script = answer_never
    run = await fleet(3)
    await run.begin(StageConfig(request_rate=60.0, duration=60.0))
    await run.until(lambda report: report.tick.gauges.in_flight >= 12)
    before = run.gauges[-1].in_flight
    server.script = slow_tokens
    os.kill(run.fleet.pids[1], signal.SIGKILL)
    await run.until(lambda report: any("died" in note.text for note in report.notes))
    lost = [record for record in run.records if record.error == LOST]
    assert 1 <= len(lost) < before
    assert {(record.worker, record.status) for record in lost} == {(1, RequestStatus.ERROR)}
    assert [note for note in run.notes if note.startswith(f"sender 1 died (exit code -9): {len(lost)} requests")]
    assert sum(report.tick.errors for report in run.reports) == len(lost)
    seen = len(run.reports)
    await run.until(lambda _: len(run.reports) == seen + 8)
    sent = sum(report.tick.sent for report in run.reports[seen + 1 :])
    assert 60 < sent < 160  # two seconds' worth of the whole rate, not of two thirds less a good margin
    assert {record.worker for report in run.reports[seen + 1 :] for record in report.records} == {0, 2}
    assert len({record.id for record in run.records}) == len(run.records)


async def test_a_closed_loop_keeps_its_concurrency_when_a_sender_dies(server: Any, fleet: Any) -> None:
    server.script = slow_tokens
    run = await fleet(2)
    await run.begin(StageConfig(max_concurrency=6, duration=60.0))
    await run.until(lambda report: report.tick.ok)
    os.kill(run.fleet.pids[0], signal.SIGKILL)
    await run.until(lambda report: any("died" in note.text for note in report.notes))
    await run.until(lambda report: report.tick.gauges.in_flight == report.tick.gauges.max_concurrency == 6)


async def test_when_the_last_sender_dies_the_run_fails_as_with_one(fleet: Any) -> None:
    run = await fleet(2)
    await run.until(lambda report: report)
    for pid in run.fleet.pids:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(LoadError, match=r"the load generator died \(exit code -9\)"):
        await run.finish()


async def test_a_url_that_is_none_is_told_in_the_senders_words(fleet: Any) -> None:
    run = await fleet(2, url="gpu7:8000")
    with pytest.raises(LoadError, match="'gpu7:8000' is no URL of a server"):
        await run.finish()


async def test_a_sender_that_stands_by_joins_in_when_those_at_work_are_at_their_limit(fleet: Any) -> None:
    run = await fleet(2, at_work=1)
    await run.begin(StageConfig(request_rate=50.0, duration=60.0))
    await run.until(lambda report: report.tick.ok)
    stuttering = asyncio.ensure_future(stutter(run.fleet.pids[0]))
    await run.until(lambda report: any("joins in" in note.text for note in report.notes))
    stuttering.cancel()
    await asyncio.wait({stuttering})
    seen = len(run.reports)
    await run.until(lambda report: len(run.reports) > seen + 2 and report.records)
    assert {record.worker for report in run.reports[:seen] for record in report.records} == {0}
    assert {gauges.max_concurrency for gauges in run.gauges} == {None}
    assert {record.worker for report in run.reports[seen + 1 :] for record in report.records} == {0, 1}
    (words,) = [note for note in run.notes if "joins in" in note]
    assert words.startswith("sender 0 ")
    assert words.endswith(": sender 1 joins in, 2 are at work now")
    assert len({record.id for record in run.records}) == len(run.records)


async def stutter(pid: int) -> None:
    """Take the processor away from a process for 200 ms out of 230."""
    try:
        while True:
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(0.2)
            os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(0.03)
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_one_worker_is_a_sender_without_a_fleet(server: Any) -> None:
    sender = await start_senders(ARGV, setup_for(server.url, MonotonicClock()), workers=1)
    assert isinstance(sender, SenderProcess)
    await sender.close()


async def test_after_a_stop_for_a_restart_the_stage_is_played_again_as_a_new_one(server: Any, fleet: Any) -> None:
    server.script = slow_tokens
    run = await fleet(2)
    await run.begin(StageConfig(request_rate=50.0, duration=60.0), StageConfig(request_rate=50.0, duration=60.0))
    await run.until(lambda report: report.tick.ok)
    await run.tell(Action.STOP)
    await run.finish()
    first = len(run.records)
    await run.begin(StageConfig(request_rate=50.0, num_prompts=10), first=2)
    await run.until(lambda report: report.state is SenderState.FINISHED and report.tick.gauges.stage == 2)
    assert [stage.index for report in run.reports for stage in report.stages] == [0, 2]
    assert [record.id for record in run.records] == list(range(100, 100 + first + 10))
