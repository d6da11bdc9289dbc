"""Whatever a server does, a request ends with the right status and a one-line error."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus
from tests.loadgen.load_run import only_record
from tests.loadgen.scripted_server import then_stall

Start = Callable[..., Any]


@pytest.fixture(params=["raw", "httpx"])
def transport(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


async def test_a_refused_connection_is_an_error(server: Any, start: Start) -> None:
    await server.stop()
    run = start(server.url)
    run.begin(StageConfig(num_prompts=3))
    await run.finish()
    assert [record.status for record in run.records] == [RequestStatus.ERROR] * 3
    assert {record.error for record in run.records} == {f"connection refused at 127.0.0.1:{server.port}"}
    assert {record.sent for record in run.records} == {None}
    assert (run.total.due, run.total.sent, run.total.errors) == (3, 0, 3)


@pytest.mark.parametrize(
    ("line", "body", "status", "error"),
    [
        ("401 Unauthorized", b'{"error": "Unauthorized"}', 401, "HTTP 401: Unauthorized"),
        ("404 Not Found", b'{"error": {"message": "no model x", "code": 404}}', 404, "HTTP 404: no model x"),
        ("429 Too Many", b'{"detail": "slow\\ndown"}', 429, "HTTP 429: slow down"),
        ("500 Internal Server Error", b"", 500, "HTTP 500: no explanation"),
        (
            "307 Temporary Redirect\r\nLocation: https://u:pw@gpu:8443/v1/completions?sig=abc",
            b"moved",
            307,
            "HTTP 307: the server redirects to https://gpu:8443/v1/completions?sig=…: give that address",
        ),
        ("200 OK", b'{"error": "exactly 1 response"}', 200, "HTTP 200, but no event stream: exactly 1 response"),
    ],
)
async def test_http_errors_keep_the_servers_text(
    server: Any, start: Start, line: str, body: bytes, status: int, error: str
) -> None:
    server.script = lambda request: request.status(line, body)
    record = await only_record(start(server.url))
    assert (record.status, record.http_status, record.error) == (RequestStatus.ERROR, status, error)
    assert record.first_token_at is None


async def test_a_connection_lost_mid_stream_is_a_truncated_request(server: Any, start: Start, sse_head: bytes) -> None:
    async def dies(request: Any) -> None:
        await request.raw(sse_head)
        await request.tokens(2)
        request.writer.transport.abort()

    server.script = dies
    record = await only_record(start(server.url))
    assert record.status is RequestStatus.TRUNCATED
    assert record.error in [f"the server {how} the connection after 2 tokens" for how in ("reset", "closed")]
    assert (record.output_tokens, list(record.chunk_tokens)) == (2, [1, 1])


async def test_a_stream_without_its_end_marker_is_truncated(server: Any, start: Start, sse_head: bytes) -> None:
    async def stops(request: Any) -> None:
        await request.raw(sse_head)
        await request.tokens(3)
        await request.raw(b"0\r\n\r\n")

    server.script = stops
    record = await only_record(start(server.url))
    assert (record.status, record.error) == (RequestStatus.TRUNCATED, "the stream ended without its end marker")


@pytest.mark.parametrize("broken", [b"data: {broken\n\n", b'data: {"a": "\xff"}\n\n'])
async def test_an_invalid_event_is_an_error(server: Any, start: Start, broken: bytes) -> None:
    server.script = then_stall(b"%x\r\n%s\r\n" % (len(broken), broken))
    record = await only_record(start(server.url))
    assert record.status is RequestStatus.ERROR
    assert record.error is not None
    assert record.error.startswith("malformed event in the stream")
    assert record.output_tokens == 2


async def test_an_error_event_in_the_stream_is_an_error(server: Any, start: Start, sse_head: bytes) -> None:
    async def fails(request: Any) -> None:
        await request.raw(sse_head)
        await request.event({"error": {"message": "engine dead"}})
        await request.end()

    server.script = fails
    record = await only_record(start(server.url))
    assert (record.status, record.error) == (RequestStatus.ERROR, "the server reports in the stream: engine dead")


async def test_an_event_of_ten_megabytes_is_an_error(server: Any, start: Start, sse_head: bytes) -> None:
    async def floods(request: Any) -> None:
        await request.raw(sse_head)
        await request.chunk(b"data: " + b"x" * 10_000_000 + b"\n\n")
        await request.end()

    server.script = floods
    record = await only_record(start(server.url))
    assert (record.status, record.error) == (RequestStatus.ERROR, "an event of the stream is longer than 4 MiB")


async def test_a_response_that_arrives_byte_by_byte_is_complete(server: Any, start: Start, sse_head: bytes) -> None:
    event = b'data: {"choices": [{"text": "a"}], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}\n\n'
    response = sse_head + b"%x\r\n%s\r\n" % (len(event), event) + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"

    async def trickles(request: Any) -> None:
        for byte in response:
            await request.raw(bytes([byte]))
            await asyncio.sleep(0)

    server.script = trickles
    record = await only_record(start(server.url))
    assert (record.status, record.output_tokens, record.error) == (RequestStatus.OK, 1, None)


async def test_a_server_that_never_responds_is_a_request_timeout(server: Any, start: Start) -> None:
    server.script = lambda request: asyncio.sleep(30)
    record = await only_record(start(server.url, timeout=0.2))
    assert (record.status, record.error) == (RequestStatus.TIMEOUT, "no complete response within 0.2 s")
    assert record.done_at is not None
    assert 0.2 <= record.done_at - record.due < 1.0


async def test_a_response_that_stays_open_after_its_end_marker_is_ok_and_its_connection_closed(
    server: Any, start: Start, sse_head: bytes
) -> None:
    async def hangs(request: Any) -> None:
        await request.raw(sse_head)
        await request.tokens(3)
        await request.chunk(b"data: [DONE]\n\n")
        await asyncio.sleep(30)

    server.script = hangs
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=1, num_prompts=2))
    await run.finish()
    assert [record.status for record in run.records] == [RequestStatus.OK] * 2
    assert server.served[0].connection != server.served[1].connection


async def test_a_stream_may_end_with_its_connection(server: Any, start: Start) -> None:
    async def old_style(request: Any) -> None:
        await request.raw(b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        await request.raw(b'data: {"choices": [{"text": "a"}]}\n\ndata: [DONE]\n\n')
        request.writer.close()

    server.script = old_style
    record = await only_record(start(server.url))
    assert (record.status, record.output_tokens) == (RequestStatus.OK, 1)


async def test_interim_responses_are_skipped(server: Any, start: Start, sse_head: bytes) -> None:
    async def patient(request: Any) -> None:
        await request.raw(b"HTTP/1.1 100 Continue\r\n\r\n")
        await request.raw(sse_head)
        await request.tokens(3)
        await request.end()

    server.script = patient
    record = await only_record(start(server.url))
    assert (record.status, record.http_status) == (RequestStatus.OK, 200)


async def test_a_response_that_is_not_http_is_an_error(server: Any, start: Start) -> None:
    server.script = lambda request: request.raw(b"SSH-2.0-OpenSSH_9.2\r\n")
    record = await only_record(start(server.url))
    assert record.status is RequestStatus.ERROR
    assert record.error is not None
    assert record.error.startswith("the response is not valid HTTP/1.1")


async def test_a_request_on_a_keep_alive_connection_that_the_server_closed_is_retried_once(
    server: Any, start: Start
) -> None:
    respond = server.script

    async def closes_the_second_time(request: Any) -> None:
        if request.number == 1:
            request.writer.transport.abort()
        else:
            await respond(request)

    server.script = closes_the_second_time
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=1, num_prompts=2))
    await run.finish()
    first, second = run.records
    assert (first.status, second.status) == (RequestStatus.OK, RequestStatus.OK)
    assert [request.connection for request in server.served[:2]] == [1, 1]
    assert second.sent - second.due < 0.2
    assert (run.total.sent, run.total.slip.count) == (2, 2)


async def test_a_new_connection_that_is_closed_without_a_response_is_an_error(server: Any, start: Start) -> None:
    async def closes(request: Any) -> None:
        request.writer.close()

    server.script = closes
    record = await only_record(start(server.url))
    assert record.status is RequestStatus.ERROR
    assert record.error == "the server closed the connection without a response"
    assert len(server.served) == 1


async def test_tls_with_a_plain_server_is_an_error(start: Start) -> None:
    def plain(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        record = await only_record(start(f"https://127.0.0.1:{port}"))
    assert record.status is RequestStatus.ERROR
    assert record.error == f"TLS with 127.0.0.1:{port} failed: WRONG_VERSION_NUMBER"


async def test_an_untrusted_certificate_is_an_error(tls_server: Any, start: Start) -> None:
    record = await only_record(start(tls_server.url))
    address = f"127.0.0.1:{tls_server.port}"
    assert (
        record.error
        == f"the certificate of {address} is not trusted (self-signed certificate): use --ca-cert FILE or --insecure"
    )


async def test_an_unknown_host_is_an_error(start: Start) -> None:
    record = await only_record(start("http://no-such-host.invalid:8000"))
    assert record.error == "unknown host no-such-host.invalid: check --url"


async def test_each_address_of_a_host_is_tried(server: Any, start: Start) -> None:
    record = await only_record(start(f"http://localhost:{server.port}"))
    assert record.status is RequestStatus.OK


async def test_a_closed_loop_backs_off_when_connections_are_refused(server: Any, start: Start) -> None:
    await server.stop()
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=8, num_prompts=16))
    await run.finish()
    assert len(run.records) == 16
    assert run.records[15].due - run.records[0].due > 0.9  # at least eight had failed before
    notes = [note.text for report in run.reports for note in report.notes]
    assert notes == [f"connection refused at 127.0.0.1:{server.port}; a closed loop retries every second"]


async def test_an_open_loop_notes_only_the_reason_of_its_failures(server: Any, start: Start) -> None:
    await server.stop()
    run = start(server.url)
    run.begin(StageConfig(request_rate=50.0, duration=0.4))
    await run.finish()
    notes = [note.text for report in run.reports for note in report.notes]
    assert notes == [f"connection refused at 127.0.0.1:{server.port}"]
