"""Load balancing over several replicas, with a health check of those that are down."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus

Start = Callable[..., Any]


@pytest.fixture(params=["raw", "httpx"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.contextmanager
def closed_port(port: int) -> Iterator[None]:
    """Reserve a port that refuses connections."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        yield


@pytest.fixture
async def other_server(server: Any) -> AsyncIterator[Any]:
    other = type(server)()
    await other.start()
    yield other
    await other.stop()


async def test_requests_are_distributed_round_robin(server: Any, other_server: Any, start: Start) -> None:
    run = start(server.url, more_urls=(other_server.url,))
    run.begin(StageConfig(num_prompts=20, request_rate=200.0))
    await run.finish()
    assert [record.replica for record in run.records] == [0, 1] * 10
    assert (len(server.served), len(other_server.served)) == (10, 10)


async def test_with_one_server_the_replica_is_not_recorded(server: Any, start: Start) -> None:
    run = start(server.url)
    run.begin(StageConfig(num_prompts=3, request_rate=200.0))
    await run.finish()
    assert [record.replica for record in run.records] == [None] * 3


async def test_a_conversation_stays_with_one_replica(server: Any, other_server: Any, start: Start) -> None:
    run = start(server.url, more_urls=(other_server.url,), num_turns="3", endpoint="chat")
    run.begin(StageConfig(num_prompts=6, request_rate=200.0))
    await run.finish()
    homes = {(record.conversation, record.replica) for record in run.records}
    assert len(run.records) > 6
    assert len(homes) == 6
    assert {replica for _, replica in homes} == {0, 1}


async def test_a_replica_that_is_down_is_skipped_until_it_is_up_again(
    server: Any, other_server: Any, start: Start
) -> None:
    def served() -> Counter[int | None]:
        return Counter(record.replica for record in run.records if record.status is RequestStatus.OK)

    port = other_server.port
    await other_server.stop()
    with closed_port(port):
        run = start(server.url, more_urls=(other_server.url,))
        run.begin(StageConfig(num_prompts=None, request_rate=50.0, duration=600.0))
        await run.until(lambda: served()[0] > 60)
        failed = [record for record in run.records if record.status is not RequestStatus.OK]
        noticed = min(record.done_at for record in failed)
        assert [record.error for record in failed if "connection refused" not in (record.error or "")] == []
        assert [record.due for record in failed if record.due > noticed] == [], "dealt to a server that is away"
        assert set(served()) == {0}
    await other_server.start(port=port)
    await run.until(lambda: served()[1] > 10)
    before = served()[0]
    await run.until(lambda: served()[0] > before)


async def test_while_all_replicas_are_down_each_request_fails_with_a_reason(
    server: Any, other_server: Any, start: Start
) -> None:
    await server.stop()
    await other_server.stop()
    run = start(server.url, more_urls=(other_server.url,), arrivals="constant")
    run.begin(StageConfig(num_prompts=6, request_rate=20.0))
    await run.finish()
    assert len(run.records) == 6
    assert {record.replica for record in run.records} == {0, 1}  # in which order, depends on when each fails
    assert all("connection refused" in (record.error or "") for record in run.records)


async def test_requests_in_flight_are_cancelled_at_every_replica(server: Any, other_server: Any, start: Start) -> None:
    released = asyncio.Event()

    async def never(request: Any) -> None:
        with contextlib.suppress(ConnectionError):
            await released.wait()

    server.script = other_server.script = never
    run = start(server.url, more_urls=(other_server.url,), timeout=0.3)
    run.begin(StageConfig(num_prompts=4, request_rate=200.0))
    await run.finish()
    assert [record.status for record in run.records] == [RequestStatus.TIMEOUT] * 4
    released.set()
