"""Senders of a pool that die, fail to start, or are activated from standby."""

import asyncio
import os
import signal
from typing import Any

import pytest

from servetop.core.config import StageConfig
from servetop.core.errors import LoadError
from servetop.core.events import RequestStatus
from servetop.loadgen.worker.sender_state import LOST
from tests.loadgen.load_run import respond_never, slow_tokens


async def test_when_a_sender_is_killed_its_requests_are_lost_and_the_others_take_over(server: Any, pool: Any) -> None:
    server.script = respond_never
    run = await pool(3)
    await run.begin(StageConfig(request_rate=60.0, duration=60.0))
    await run.until(lambda report: report.tick.gauges.in_flight >= 12)
    before = run.gauges[-1].in_flight
    server.script = slow_tokens
    os.kill(run.pool.pids[1], signal.SIGKILL)
    await run.until(lambda report: any("died" in note.text for note in report.notes))
    lost = [record for record in run.records if record.error == LOST]
    assert 1 <= len(lost) < before
    assert {(record.worker, record.status) for record in lost} == {(1, RequestStatus.ERROR)}
    assert [note for note in run.notes if note.startswith(f"sender 1 died (exit code -9): {len(lost)} requests")]
    assert sum(report.tick.errors for report in run.reports) == len(lost)
    assert [death for report in run.reports for death in report.deaths] == [n for n in run.notes if "died" in n]
    seen = len(run.reports)
    await run.until(lambda _: len(run.reports) == seen + 8)
    sent = sum(report.tick.sent for report in run.reports[seen + 1 :])
    assert 60 < sent < 160  # two seconds at the full rate, not at two thirds of it
    assert {record.worker for report in run.reports[seen + 1 :] for record in report.records} == {0, 2}
    assert len({record.id for record in run.records}) == len(run.records)


async def test_a_closed_loop_keeps_its_concurrency_when_a_sender_dies(server: Any, pool: Any) -> None:
    server.script = slow_tokens
    run = await pool(2)
    await run.begin_and_wait(StageConfig(max_concurrency=6, duration=60.0))
    os.kill(run.pool.pids[0], signal.SIGKILL)
    await run.until(lambda report: any("died" in note.text for note in report.notes))
    await run.until(lambda report: report.tick.gauges.in_flight == report.tick.gauges.max_concurrency == 6)


async def test_when_the_last_sender_dies_the_run_fails(pool: Any) -> None:
    run = await pool(2)
    await run.until(lambda report: report)
    for pid in run.pool.pids:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(LoadError, match=r"the load generator died \(exit code -9\)"):
        await run.finish()


async def test_an_invalid_url_is_reported_with_the_senders_error(pool: Any) -> None:
    run = await pool(2, url="ftp://gpu7")
    with pytest.raises(LoadError, match="invalid server address 'ftp://gpu7'"):
        await run.finish()


async def test_a_standby_sender_is_activated_when_the_active_ones_are_saturated(pool: Any) -> None:
    run = await pool(2, active=1)
    await run.begin_and_wait(StageConfig(request_rate=50.0, duration=60.0))
    stuttering = asyncio.ensure_future(stutter(run.pool.pids[0]))
    await run.until(lambda report: any("added" in note.text for note in report.notes))
    stuttering.cancel()
    await asyncio.wait({stuttering})
    for worker in (1, 0):
        await run.until(lambda report, worker=worker: any(record.worker == worker for record in report.records))
    added = [any("added" in note.text for note in report.notes) for report in run.reports].index(True)
    assert {record.worker for report in run.reports[:added] for record in report.records} == {0}
    assert {gauges.max_concurrency for gauges in run.gauges} == {None}
    (note,) = [note for note in run.notes if "added" in note]
    assert note.startswith("sender 0 ")
    assert note.endswith(": sender 1 added, 2 are active now")
    assert len({record.id for record in run.records}) == len(run.records)


async def stutter(pid: int) -> None:
    """Stop a process for 200 ms out of every 230 ms."""
    try:
        while True:
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(0.2)
            os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(0.03)
    finally:
        os.kill(pid, signal.SIGCONT)
