"""One request outside of any load is sent and read as those of a load."""

from __future__ import annotations

import dataclasses
import gzip

import pytest

from servetop.core.config import WorkloadConfig
from servetop.core.events import RequestStatus
from servetop.run.attached.find_format import short_prompt
from servetop.run.attached.single_request import RequestTarget, SingleRequest, send_single
from tests.odd_server import EVENTS, Asked, Reply, completed, odd_server, refused


async def sent(url: str, *, timeout: float = 30.0, **workload: object) -> SingleRequest:
    target = RequestTarget(url=url, model="m", api_key="sk-1", headers={"X-Team": "a"})
    plain = dataclasses.replace(WorkloadConfig(), **workload)  # type: ignore[arg-type]
    return await send_single(
        target, "completions", prompt=short_prompt(target, with_ids=True), workload=plain, timeout=timeout
    )


async def test_the_response_is_read_and_kept() -> None:
    with odd_server() as server:
        request = await sent(server.url)
        (asked,) = server.asked
    assert (request.status, request.completion_tokens, request.http_status) == (RequestStatus.OK, 5, 200)
    assert request.text is not None
    assert request.text.full == " word0 word1 word2 word3 word4"
    assert request.received == completed(asked).body
    assert (asked.headers["authorization"], asked.headers["x-team"]) == ("Bearer sk-1", "a")


async def test_an_error_is_kept_whole() -> None:
    with odd_server(lambda _: refused("no such field", 422)) as server:
        request = await sent(server.url)
    assert (request.status, request.error) == (RequestStatus.ERROR, "HTTP 422: no such field")
    assert request.received == refused("no such field", 422).body


async def test_a_compressed_body_is_kept_as_text() -> None:
    whole = completed(Asked("", {}, {})).body
    with odd_server(lambda _: Reply(200, gzip.compress(whole), coding="gzip")) as server:
        request = await sent(server.url, stream=False)
    assert (request.status, request.received) == (RequestStatus.OK, whole)


async def test_a_server_that_hangs_is_abandoned() -> None:
    with odd_server(
        lambda _: Reply(200, b'data: {"choices":[{"index":0,"text":"a"}]}\n\n', EVENTS, hangs=True)
    ) as server:
        request = await sent(server.url, timeout=0.5)
    assert (request.status, request.error) == (RequestStatus.TIMEOUT, "no complete response within 0.5 s")
    assert request.received.startswith(b"data: ")


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_server_that_is_not_there_is_an_error(scheme: str) -> None:
    request = await sent(f"{scheme}://127.0.0.1:1")
    assert (request.status, request.http_status) == (RequestStatus.ERROR, None)
