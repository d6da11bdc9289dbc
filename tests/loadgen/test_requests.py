"""Request options: headers, responses without streaming, several choices, random cancellation."""

from collections.abc import Callable
from typing import Any

import pytest

from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus, TokenSource
from servetop.loadgen.transport.endpoint import Endpoint

Start = Callable[..., Any]
WHOLE = b'{"choices": [{"index": 0, "text": " all of it"}], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}'


async def test_headers_are_sent_with_every_request_and_an_authorization_replaces_the_api_key(
    start: Start, server: Any
) -> None:
    run = start(server.url, headers={"X-Tenant": "blue", "Authorization": "Basic abc"}, api_key="secret-key")
    run.begin(StageConfig(max_concurrency=1, num_prompts=2))
    await run.finish()
    for request in server.served:
        lines = request.head.split("\r\n")
        assert "X-Tenant: blue" in lines
        assert [line for line in lines if line.lower().startswith("authorization")] == ["Authorization: Basic abc"]


def test_other_headers_do_not_replace_the_api_key() -> None:
    head = Endpoint.parse("http://h:1", api_key="k", headers={"A": "b"}).head("/v1/completions").decode()
    assert "authorization: Bearer k\r\n" in head
    assert head.endswith("A: b\r\n")


async def test_a_response_without_streaming_is_one_chunk_at_its_end(start: Start, server: Any) -> None:
    async def unstreamed(request: Any) -> None:
        await request.status("200 OK", WHOLE)

    server.script = unstreamed
    run = start(server.url, stream=False, store_texts=True)
    run.begin(StageConfig(max_concurrency=1, num_prompts=2))
    await run.finish()
    for record in run.records:
        assert (record.status, record.output_tokens, record.prompt_tokens) == (RequestStatus.OK, 3, 5)
        assert (record.first_token_at, record.token_source) == (record.done_at, TokenSource.USAGE)
        assert (record.output_text, record.chunk_tokens.tolist()) == (" all of it", [3])
    assert [request.content["stream"] for request in server.served] == [False, False]
    assert "stream_options" not in server.served[0].content
    assert run.total.output_tokens == 6


@pytest.mark.parametrize(
    ("line", "body", "text"),
    [
        ("400 Bad Request", b'{"error": {"message": "too long"}}', "HTTP 400: too long"),
        ("200 OK", b'{"detail": "later"}', "response body has no completion: later"),
        ("200 OK", b'{"choices": [', "malformed response"),
        ("200 OK", b"[]", "response body has no completion"),
    ],
)
async def test_an_invalid_response_without_streaming_is_an_error(
    start: Start, server: Any, line: str, body: bytes, text: str
) -> None:
    async def unstreamed(request: Any) -> None:
        await request.status(line, body)

    server.script = unstreamed
    run = start(server.url, stream=False)
    run.begin(StageConfig(max_concurrency=1, num_prompts=1))
    await run.finish()
    assert run.records[0].status is RequestStatus.ERROR
    assert text in run.records[0].error


async def test_several_choices_can_be_requested(start: Start, server: Any) -> None:
    run = start(server.url, n=3)
    run.begin(StageConfig(max_concurrency=1, num_prompts=1))
    await run.finish()
    assert server.served[0].content["n"] == 3


async def test_a_fraction_of_the_requests_is_cancelled_mid_stream(start: Start, server: Any, sse_head: bytes) -> None:
    async def slowly(request: Any) -> None:
        await request.raw(sse_head)
        await request.tokens(12, gap=0.02)
        await request.end()

    server.script = slowly
    run = start(server.url, cancel_fraction=0.5, output_len=6)
    run.begin(StageConfig(request_rate=200.0, num_prompts=40))
    await run.finish()
    ended = [record.status for record in run.records]
    cancelled = [record for record in run.records if record.status is RequestStatus.CANCELLED]
    assert ended.count(RequestStatus.OK) + len(cancelled) == 40
    assert 10 <= len(cancelled) <= 30
    assert {record.error for record in cancelled} == {"cancelled by the client (cancel_fraction)"}
    assert all(1 <= sum(record.chunk_tokens) < 12 for record in cancelled)


async def test_clipped_requests_are_noted_when_the_load_ends(start: Start, server: Any) -> None:
    run = start(server.url, clip_lengths=True, input_len=50, output_len=10, max_model_len=20)
    run.begin(StageConfig(max_concurrency=2, num_prompts=4))
    await run.finish()
    notes = [note.text for report in run.reports for note in report.notes]
    assert notes == ["4 requests were clipped to the model's context"]
    assert {(len(each.content["prompt"]), each.content["max_tokens"]) for each in server.served} == {(10, 10)}
