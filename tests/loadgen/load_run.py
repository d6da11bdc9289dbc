"""A load sent by one sender, or by a pool of real sender processes, and everything that was reported."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.events import Action, Command, RequestRecord
from servetop.core.tick import ClientTick, LoadGauges, merge_client_ticks
from servetop.loadgen.messages import SenderReport, SenderSetup
from servetop.loadgen.sender.sender import Sender
from servetop.loadgen.worker.sender_pool import SenderPool
from servetop.workload.stages.plan import LoadPhase, LoadPlan
from tests.harness import SLOW_MACHINE
from tests.loadgen.scripted_server import SSE_HEAD

ARGV = (sys.executable, "-m", "servetop.run.process.sender_program")


@dataclass(eq=False)
class LoadRun:
    """One sender and everything it reported."""

    sender: Sender
    clock: MonotonicClock
    reports: list[SenderReport] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _commands: int = 0

    def take(self, report: SenderReport) -> None:
        self.reports.append(report)
        self._news.set()

    async def until(self, condition: Callable[[], object], *, seconds: float = 10.0) -> None:
        """Wait until a condition holds after a report."""
        async with asyncio.timeout(seconds * SLOW_MACHINE):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def finish(self, *, seconds: float = 10.0) -> None:
        await self.until(lambda: self.reports and self.reports[-1].state is LoadPhase.FINISHED, seconds=seconds)

    def begin(
        self, *stages: StageConfig, drain: bool = False, drain_timeout: float = 5.0 * SLOW_MACHINE, ahead: float = 0.02
    ) -> None:
        self.sender.begin(
            LoadPlan(
                segments=tuple(enumerate(stages)),
                begin=self.clock.now() + ahead,
                drain_at_stages=drain,
                drain_timeout=drain_timeout,
            )
        )

    def command(self, action: Action, value: float | None = None) -> None:
        self._commands += 1
        self.sender.apply(Command(id=self._commands, at=self.clock.now(), action=action, value=value))

    @property
    def records(self) -> Sequence[RequestRecord]:
        return sorted((record for report in self.reports for record in report.records), key=lambda each: each.id)

    @property
    def replies(self) -> Sequence[str | None]:
        return [command.reply for report in self.reports for command in report.replies]

    @property
    def total(self) -> ClientTick:
        """The sum of all ticks."""
        return merge_client_ticks([report.tick for report in self.reports], gauges=self.reports[-1].tick.gauges)


async def only_record(run: LoadRun, *, seconds: float = 10.0) -> Any:
    """Send one request and return its record."""
    run.begin(StageConfig(num_prompts=1))
    await run.finish(seconds=seconds)
    (record,) = run.records
    assert record.error is None or "\n" not in record.error
    return record


def setup_for(url: str, clock: MonotonicClock, **workload: Any) -> SenderSetup:
    given = WorkloadConfig(**{"input_len": 5, "output_len": 3, **workload})
    return SenderSetup(
        url=url, model="m", origin_ns=clock.origin_ns, workload=given, continuous_usage=True, first_id=100
    )


@dataclass(eq=False)
class PoolRun:
    """A pool of sender processes and everything it reported."""

    pool: SenderPool
    clock: MonotonicClock
    reports: list[SenderReport] = field(default_factory=list)
    _commands: int = 0

    def __post_init__(self) -> None:
        self._stream = self.pool.reports()

    async def begin(self, *stages: StageConfig, first: int = 0, drain: bool = False) -> None:
        segments = tuple(enumerate(stages, start=first))
        await self.pool.begin(LoadPlan(segments=segments, begin=0.0, drain_at_stages=drain, drain_timeout=5.0))

    async def begin_and_wait(self, *stages: StageConfig) -> None:
        """Begin a plan and wait until a request has succeeded."""
        await self.begin(*stages)
        await self.until(lambda report: report.tick.ok)

    async def command(self, action: Action, value: float | None = None) -> None:
        self._commands += 1
        await self.pool.command(Command(id=self._commands, at=0.0, action=action, value=value))

    async def until(self, condition: Callable[[SenderReport], object], *, seconds: float = 20.0) -> None:
        async with asyncio.timeout(seconds * SLOW_MACHINE):
            async for report in self._stream:
                self.reports.append(report)
                if condition(report):
                    return
        raise AssertionError("the pool fell silent")

    async def finish(self) -> None:
        await self.until(lambda report: report.state is LoadPhase.FINISHED)

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


async def respond_never(request: Any) -> None:
    await request.raw(SSE_HEAD)
    await request.token(1)
    await asyncio.Event().wait()


async def slow_tokens(request: Any) -> None:
    await request.raw(SSE_HEAD)
    await request.tokens(2, gap=0.03)
    await request.end()


async def slow_response(request: Any) -> None:
    """Respond with three tokens in about 0.3 s."""
    await request.raw(SSE_HEAD)
    await request.tokens(3, gap=0.1)
    await request.end()
