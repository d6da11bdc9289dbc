"""Commands to a running sender: what changes, and the reply."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

from servetop.core.config import StageConfig
from servetop.core.events import Action, RequestStatus
from tests.loadgen.load_run import slow_response

Start = Callable[..., Any]


async def test_rate_and_burst_commands_change_the_load_at_once(server: Any, start: Start) -> None:
    run = start(server.url, burstiness=math.inf)
    run.begin(StageConfig(request_rate=0.1, duration=60.0))
    await run.until(lambda: len(run.records) == 1)
    run.command(Action.BURST, 5)
    await run.until(lambda: len(run.records) == 6)
    run.command(Action.SET_RATE, 50)
    await run.until(lambda: len(run.records) >= 20)
    assert run.reports[-1].tick.gauges.request_rate == 50
    run.command(Action.STOP)
    await run.finish()
    assert run.replies[:2] == ["sending 5 requests now", "sending 50 requests/s"]
    assert run.replies[2].startswith("no further requests are sent, waiting for")


async def test_nothing_is_sent_between_pause_and_resume(server: Any, start: Start) -> None:
    run = start(server.url, burstiness=math.inf)
    run.begin(StageConfig(request_rate=100.0, duration=60.0))
    await run.until(lambda: len(run.records) >= 5)
    run.command(Action.PAUSE_LOAD)
    await run.until(lambda: run.reports[-1].tick.gauges.paused and run.reports[-1].tick.gauges.in_flight == 0)
    before = len(server.served)
    reports = len(run.reports)
    await run.until(lambda: len(run.reports) > reports)
    assert len(server.served) == before
    run.command(Action.RESUME_LOAD)
    await run.until(lambda: len(server.served) > before)


async def test_gauges_show_the_current_concurrency_limit_and_hold(server: Any, start: Start) -> None:
    server.script = slow_response
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=1, duration=60.0))
    await run.until(lambda: server.most_active == 1)
    run.command(Action.SET_CONCURRENCY, 4)
    run.command(Action.HOLD_STAGE)
    await run.until(lambda: server.most_active == 4)
    await run.until(lambda: run.reports[-1].tick.gauges.holding)
    assert run.reports[-1].tick.gauges.max_concurrency == 4


async def test_cancel_ends_all_requests_and_records_the_queued_ones(server: Any, start: Start) -> None:
    server.script = lambda request: asyncio.sleep(30)
    run = start(server.url)
    run.begin(StageConfig(request_rate=0.1, max_concurrency=2, duration=60.0))
    await run.until(lambda: run.reports)
    run.command(Action.BURST, 5)
    await run.until(lambda: server.active == 2)
    run.command(Action.CANCEL)
    await run.finish()
    assert {record.status for record in run.records} == {RequestStatus.CANCELLED}
    assert sum(record.sent is None for record in run.records) == len(run.records) - 2
    assert run.replies[-1] == f"{len(run.records)} requests cancelled"
    assert run.total.cancelled == run.total.due == len(run.records)


async def test_commands_before_any_load_get_a_reply(server: Any, start: Start) -> None:
    run = start(server.url)
    run.command(Action.SET_RATE, 5)
    run.command(Action.BURST, 5)
    run.command(Action.CANCEL)
    await run.finish()
    assert run.replies == ["no load has been started yet", "no load has been started yet", "0 requests cancelled"]


async def test_invalid_bursts_and_unsupported_commands_are_rejected(server: Any, start: Start) -> None:
    run = start(server.url)
    run.begin(StageConfig(request_rate=1.0, duration=60.0), ahead=0.0)
    run.command(Action.BURST, 1e9)
    run.command(Action.BURST, None)
    run.command(Action.MARK)
    await run.until(lambda: len(run.replies) == 3)
    assert run.replies == ["invalid burst: use 1 to 10,000 requests"] * 2 + ["the load generator does not support mark"]
