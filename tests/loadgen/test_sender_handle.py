"""The sender process: it plays plans, applies commands, ends with the run, and its death is noticed."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import LoadError
from servetop.core.events import Action, Command, RequestStatus
from servetop.loadgen.messages import SenderReport, SenderSetup
from servetop.loadgen.worker.sender_handle import SenderHandle
from servetop.workload.stages.plan import LoadPhase, LoadPlan

CHILD = """
import sys
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.worker.sender_main import serve_sender
def chosen(setup):
    print("text on stdout does no harm")
    return dialect_for(setup.dialect, model=setup.model, continuous_usage=setup.continuous_usage)
sys.exit(serve_sender(chosen))
"""
ARGV = (sys.executable, "-c", CHILD)


def setup_for(url: str, clock: MonotonicClock, **more: Any) -> SenderSetup:
    workload = WorkloadConfig(input_len=5, output_len=3, extra_body={"top_k": 1})
    return SenderSetup(url=url, model="m", origin_ns=clock.origin_ns, workload=workload, **more)


@pytest.fixture
async def sender(server: Any) -> AsyncIterator[SenderHandle]:
    clock = MonotonicClock()
    process = await SenderHandle.start(ARGV, setup_for(server.url, clock, continuous_usage=True))
    yield process
    await process.close()
    assert process.returncode is not None


async def played(sender: SenderHandle, plan: LoadPlan) -> Sequence[SenderReport]:
    await sender.begin(plan)
    reports = []
    async for report in sender.reports():
        reports.append(report)
        if report.state is LoadPhase.FINISHED:
            break
    return reports


async def test_a_sender_plays_a_plan_in_run_time_and_exits_when_closed(server: Any) -> None:
    clock = MonotonicClock()
    sender = await SenderHandle.start(ARGV, setup_for(server.url, clock, continuous_usage=True))
    begin = clock.now() + 0.5
    reports = await played(sender, LoadPlan(segments=((4, StageConfig(num_prompts=3)),), begin=begin))
    records = [record for report in reports for record in report.records]
    assert [record.status for record in records] == [RequestStatus.OK] * 3
    assert [record.stage for record in records] == [4] * 3
    assert min(record.due for record in records) >= begin
    assert all(record.chunk_times[0] == record.first_token_at for record in records)
    assert max(record.done_at or 0 for record in records) < clock.now()
    assert sum(report.tick.output_tokens for report in reports) == 9
    assert server.served[0].content["top_k"] == 1
    await sender.close()
    assert sender.returncode == 0


async def test_a_sender_process_can_use_https(
    tls_server: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    sender = await SenderHandle.start(ARGV, setup_for(tls_server.url, MonotonicClock(), continuous_usage=True))
    reports = await played(sender, LoadPlan(segments=((0, StageConfig(num_prompts=4)),), begin=0.0))
    assert sum(report.tick.ok for report in reports) == 4
    await sender.close()


async def test_a_sender_replies_to_commands(sender: SenderHandle) -> None:
    await sender.begin(LoadPlan(segments=((0, StageConfig(request_rate=1.0)),), begin=0.0))
    await sender.command(Command(id=7, at=0.0, action=Action.CANCEL, source="test"))
    async for report in sender.reports():
        if report.replies:
            (reply,) = report.replies
            break
    assert (reply.id, reply.source) == (7, "test")
    assert reply.reply is not None
    assert reply.reply.endswith("cancelled")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_sender_ignores_termination_signals(sender: SenderHandle, number: signal.Signals) -> None:
    reports = sender.reports()
    first = await anext(reports)
    os.kill(sender.pid, number)
    assert (await anext(reports)).tick.index == first.tick.index + 1
    assert sender.returncode is None


async def send_commands_forever(sender: SenderHandle) -> None:
    while True:
        await sender.command(Command(id=1, at=0.0, action=Action.STOP))
        await asyncio.sleep(0)


async def test_the_death_of_a_sender_is_an_error(sender: SenderHandle) -> None:
    reports = sender.reports()
    await anext(reports)
    os.kill(sender.pid, signal.SIGKILL)
    with pytest.raises(LoadError, match=r"the load generator died \(exit code -9\)"):
        async for _ in reports:
            pass
    with pytest.raises(LoadError, match="died"):
        await asyncio.wait_for(send_commands_forever(sender), 10)


async def test_an_invalid_url_is_reported_with_the_senders_error() -> None:
    sender = await SenderHandle.start(ARGV, setup_for("ftp://gpu7", MonotonicClock()))
    with pytest.raises(LoadError, match=r"invalid server address 'ftp://gpu7': use one such as"):
        async for _ in sender.reports():
            pass
    await sender.close()


async def test_a_command_that_is_not_a_sender_is_an_error() -> None:
    with pytest.raises(LoadError, match="cannot start the sender process"):
        await SenderHandle.start(("/no/such/python",), setup_for("http://localhost:1", MonotonicClock()))
    foreign = "import sys; sys.stdin.buffer.read(1); print('x' * 100)"  # not before the set-up has reached it
    sender = await SenderHandle.start((sys.executable, "-c", foreign), setup_for("", MonotonicClock()))
    with pytest.raises(LoadError, match="protocol error between run and sender"):
        async for _ in sender.reports():
            pass
    await sender.close()


async def test_a_sender_ends_when_the_run_process_dies(server: Any) -> None:
    """The run is a process that starts a sender, prints its pid, and kills itself."""
    run = f"""
import asyncio, os, sys
from servetop.core.clock import MonotonicClock
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.worker.sender_handle import SenderHandle
async def main():
    setup = SenderSetup(url={server.url!r}, model="m", origin_ns=MonotonicClock().origin_ns)
    sender = await SenderHandle.start({ARGV!r}, setup)
    await anext(sender.reports())
    print(sender.pid, flush=True)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", run, stdout=asyncio.subprocess.PIPE)
    output, _ = await parent.communicate()
    async with asyncio.timeout(5):
        while os.path.exists(f"/proc/{int(output)}/exe"):
            await asyncio.sleep(0.01)


def test_the_api_key_is_not_in_the_repr_of_a_setup() -> None:
    assert "sk-1" not in repr(setup_for("http://localhost:1", MonotonicClock(), api_key="sk-1"))
