"""The health check of a watched server: what counts as an answer."""

from __future__ import annotations

import pytest

from servetop.core.clock import MonotonicClock
from servetop.engines.control.control_client import ServerClient
from servetop.engines.watching.health_check import HEALTH_SECONDS, HealthAnswer, HealthCheck
from tests.engines.conftest import PageServer


async def asked(server: PageServer) -> HealthAnswer:
    client = ServerClient(server.url)
    try:
        return await HealthCheck(client, "/health", MonotonicClock()).ask()
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("page", "given", "healthy"),
    [
        ((200, b""), True, True),
        ((200, b"<!doctype html>"), True, False),
        ((404, b""), True, False),
        ((503, b"loading"), False, False),
    ],
)
async def test_what_counts_as_an_answer(
    server: PageServer, page: tuple[int, bytes], given: bool, healthy: bool
) -> None:
    server.pages["/health"] = page
    answer = await asked(server)
    assert (answer.is_given, answer.is_healthy, answer.sample is not None) == (given, healthy, given)
    assert answer.text.startswith(f"/health: HTTP {page[0]} in ")
    assert answer.page.startswith(HEALTH_SECONDS.encode() + b" 0.")


async def test_a_server_that_is_gone_gives_no_answer(server: PageServer) -> None:
    await server.vanish()
    answer = await asked(server)
    assert (answer.is_given, answer.sample, answer.text) == (False, None, "/health: connection refused")
