"""The server's own times are in the record and in the tick in which the request ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from servetop.core.config import StageConfig


async def test_server_times_in_the_response_are_recorded(
    server: Any, start: Callable[..., Any], sse_head: bytes
) -> None:
    async def timed(request: Any) -> None:
        await request.raw(sse_head)
        await request.tokens(3)
        times = {"queue_time_ms": 10.0, "time_to_first_token_ms": 30.0, "generation_time_ms": 200.0}
        usage = {"prompt_tokens": 5, "completion_tokens": 3}
        await request.event({"choices": [], "usage": usage, "metrics": times})
        await request.end()

    server.script = timed
    run = start(server.url)
    run.begin(StageConfig(num_prompts=4, request_rate=100.0))
    await run.finish()
    assert [(each.server_queue, each.server_prefill, each.server_decode) for each in run.records] == [
        (0.01, 0.03, 0.2)
    ] * 4
    assert (run.total.server_queue.count, run.total.server_prefill.count) == (4, 4)
    assert run.total.server_queue.total == pytest.approx(0.04)


async def test_without_server_times_none_are_recorded(server: Any, start: Callable[..., Any]) -> None:
    run = start(server.url)
    run.begin(StageConfig(num_prompts=2, request_rate=100.0))
    await run.finish()
    assert [(each.server_queue, each.server_prefill, each.server_decode) for each in run.records] == [(None,) * 3] * 2
    assert run.total.server_queue.count == 0
