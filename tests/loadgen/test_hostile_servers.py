"""Servers that are slow, endless or wrong: memory stays bounded, and the error is one line."""

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus
from tests.loadgen.load_run import only_record
from tests.loadgen.scripted_server import then_stall

Start = Callable[..., Any]
MIB = 1 << 20


def resident() -> int:
    """This process's resident memory in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def flood(request: Any, piece: bytes, *, total: int) -> int:
    """Send pieces until the connection closes or `total` is reached; return the bytes sent."""
    sent = 0
    while sent < total and not request.writer.is_closing():
        await request.raw(piece)
        sent += len(piece)
    return sent


async def test_a_slow_server_is_measured_as_slow(server: Any, start: Start, sse_head: bytes) -> None:
    async def slow(request: Any) -> None:
        await asyncio.sleep(0.3)
        await request.raw(sse_head)
        await request.tokens(3, gap=0.2)
        await request.end()

    server.script = slow
    run = start(server.url)
    record = await only_record(run)
    assert (record.status, record.output_tokens) == (RequestStatus.OK, 3)
    assert record.ttft >= 0.3
    assert record.tpot >= 0.2
    rounding = 2e-6  # times of tokens are whole microseconds after the first
    assert record.ttft + 2 * record.tpot - rounding <= record.e2el <= run.clock.now()


async def test_a_server_that_stalls_mid_stream_is_a_timeout_with_the_tokens_received(server: Any, start: Start) -> None:
    server.script = then_stall(b"")
    record = await only_record(start(server.url, timeout=0.4))
    assert (record.status, record.output_tokens) == (RequestStatus.TIMEOUT, 2)


async def test_a_connection_that_is_reset_after_accept_is_an_error(server: Any, start: Start) -> None:
    async def resets(request: Any) -> None:
        request.writer.transport.abort()

    server.script = resets
    record = await only_record(start(server.url))
    assert record.status is RequestStatus.ERROR
    assert record.error in [f"the server {how} the connection without a response" for how in ("reset", "closed")]


@pytest.mark.parametrize(
    ("beginning", "piece"),
    [(b"data: ", b"x" * 65536), (b"data: x\n", b"data: " + b"y" * 65529 + b"\n"), (b": ", b"c" * 65536)],
    ids=["one line", "many lines", "a comment"],
)
async def test_an_event_of_a_hundred_megabytes_is_rejected_after_a_few(
    server: Any, start: Start, sse_head: bytes, beginning: bytes, piece: bytes
) -> None:
    sent: list[int] = []

    async def floods(request: Any) -> None:
        await request.raw(sse_head)
        await request.chunk(beginning)
        await request.raw(b"%x\r\n" % (100 * MIB))
        sent.append(0)
        sent[0] = await flood(request, piece, total=100 * MIB)

    server.script = floods
    before = resident()
    record = await only_record(start(server.url))
    assert (record.status, record.error) == (RequestStatus.ERROR, "an event of the stream is longer than 4 MiB")
    assert sent[0] < 32 * MIB
    assert resident() - before < 48 * MIB


@pytest.mark.parametrize("stream", [True, False])
async def test_an_endless_error_body_is_truncated(server: Any, start: Start, stream: bool) -> None:
    async def rambles(request: Any) -> None:
        await request.raw(b"HTTP/1.1 500 Oops\r\ncontent-length: 48000000\r\n\r\n")
        await flood(request, b"sorry " * 10_000, total=48_000_000)

    server.script = rambles
    before = resident()
    record = await only_record(start(server.url, stream=stream))
    assert (record.status, record.http_status) == (RequestStatus.ERROR, 500)
    assert record.error.startswith("HTTP 500: sorry sorry")
    assert len(record.error) < 1000
    assert resident() - before < 48 * MIB


@pytest.mark.parametrize(
    ("beginning", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nx-endless: ", b"a" * 65536),
        (b"HTTP/1.1 200 OK\r\n", b"x-again: and again\r\n" * 4096),
        (b"HTTP/1.1 200 O", b"K" * 65536),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-trailer: ", b"z" * 65536),
    ],
    ids=["one header", "many headers", "status line", "trailer"],
)
async def test_endless_headers_are_an_error(server: Any, start: Start, beginning: bytes, piece: bytes) -> None:
    async def floods(request: Any) -> None:
        await request.raw(beginning)
        await flood(request, piece, total=100 * MIB)

    server.script = floods
    before = resident()
    record = await only_record(start(server.url))
    assert record.error.startswith("the response has more than 1 MiB of headers")
    assert record.status in (RequestStatus.ERROR, RequestStatus.TRUNCATED)
    assert resident() - before < 48 * MIB


@pytest.mark.parametrize("garbage", [b"zz\r\n", b"-5\r\nhello\r\n", b"\x00\xff\xfe\r\n", b"fffffffffffffffff\r\n"])
async def test_an_invalid_chunk_header_is_an_error(server: Any, start: Start, garbage: bytes) -> None:
    server.script = then_stall(garbage)
    record = await only_record(start(server.url))
    assert (record.status, record.output_tokens) == (RequestStatus.TRUNCATED, 2)
    assert record.error.startswith("the response is not valid HTTP/1.1")
    assert record.error.endswith("after 2 tokens")


async def test_an_html_page_is_not_parsed_as_a_stream(server: Any, start: Start) -> None:
    page = b"<html><body>Welcome to nginx!</body></html>"

    async def greets(request: Any) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n" % len(page)
        await request.raw(head + page)

    server.script = greets
    record = await only_record(start(server.url))
    assert record.status is RequestStatus.ERROR
    assert record.error == f"HTTP 200, but no event stream: {page.decode()}"


@pytest.mark.parametrize("content_type", ["text/plain; charset=utf-8", "application/octet-stream"])
async def test_a_stream_with_a_wrong_content_type_is_parsed(server: Any, start: Start, content_type: str) -> None:
    async def misnames(request: Any) -> None:
        await request.raw(f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n".encode())
        await request.raw(b"transfer-encoding: chunked\r\n\r\n")
        await request.tokens(3)
        await request.end()

    server.script = misnames
    record = await only_record(start(server.url))
    assert (record.status, record.output_tokens) == (RequestStatus.OK, 3)


async def test_a_server_that_closes_after_each_response_gets_new_connections(server: Any, start: Start) -> None:
    async def once(request: Any) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
        await request.raw(head + b"connection: close\r\n\r\n")
        await request.tokens(3)
        await request.end()
        request.writer.close()

    server.script = once
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=2, num_prompts=6))
    await run.finish()
    assert [record.status for record in run.records] == [RequestStatus.OK] * 6
    assert len({request.connection for request in server.served}) == 6


@pytest.mark.parametrize("status", ["201 Created", "203 Non-Authoritative Information"])
async def test_a_stream_with_another_status_of_success_is_a_completion(server: Any, start: Start, status: str) -> None:
    async def created(request: Any) -> None:
        await request.raw(f"HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        await request.tokens(3)
        await request.end()

    server.script = created
    record = await only_record(start(server.url))
    assert (record.status, record.error, record.output_tokens) == (RequestStatus.OK, None, 3)


async def test_another_response_in_the_read_that_ends_one_is_not_of_it(
    server: Any, start: Start, sse_head: bytes
) -> None:
    async def says_why_it_closes(request: Any) -> None:
        events = b"".join(b'data: {"choices": [{"index": 0, "text": " a"}]}\n\n' for _ in range(3))
        body = events + b"data: [DONE]\n\n"
        last = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 4\r\nconnection: close\r\n\r\nslow"
        await request.raw(b"%s%x\r\n%s\r\n0\r\n\r\n%s" % (sse_head, len(body), body, last))
        request.writer.close()

    server.script = says_why_it_closes
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=1, num_prompts=3))
    await run.finish()
    assert [(record.status, record.error, record.output_tokens) for record in run.records] == [
        (RequestStatus.OK, None, 3)
    ] * 3


async def test_a_change_of_protocol_is_named(server: Any, start: Start) -> None:
    async def switches(request: Any) -> None:
        await request.raw(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n")

    server.script = switches
    record = await only_record(start(server.url))
    assert (record.status, record.error) == (
        RequestStatus.ERROR,
        "the server switches to another protocol (HTTP 101)",
    )


async def test_a_closed_loop_backs_off_if_the_host_cannot_be_resolved(start: Start) -> None:
    run = start("http://no-such-host.invalid:8000")
    run.begin(StageConfig(max_concurrency=4, duration=0.6))
    await run.finish()
    assert 4 <= len(run.records) <= 16
    assert {record.status for record in run.records} == {RequestStatus.ERROR}
    (note,) = [note.text for report in run.reports for note in report.notes]
    assert note.startswith("unknown host no-such-host.invalid: check --url")


FEW_FILES = """
import asyncio, json, resource, sys
from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.transport.transport_factory import transport_factory
from servetop.loadgen.messages import (SenderSetup)
from servetop.workload.stages.plan import LoadPhase
from servetop.workload.stages.plan import LoadPlan
from servetop.loadgen.sender.sender import Sender

async def main(url):
    clock = MonotonicClock()
    workload = WorkloadConfig(input_len=5, output_len=3, timeout=5.0)
    setup = SenderSetup(url=url, model="m", origin_ns=clock.origin_ns, workload=workload)
    dialect, reports = dialect_for("completions", model="m", continuous_usage=True), []
    over = asyncio.Event()
    def take(report):
        reports.append(report)
        if report.state is LoadPhase.FINISHED:
            over.set()
    transport = transport_factory(setup, dialect, clock)
    sender = Sender(setup, dialect, clock=clock, transport=transport, report=take)
    sender.begin(LoadPlan(segments=((0, StageConfig(num_prompts=100)),), begin=clock.now()))
    await asyncio.wait_for(over.wait(), 20)
    await sender.close()
    print(json.dumps([[str(each.status), each.error] for report in reports for each in report.records]))

resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
asyncio.run(main(sys.argv[1]))
"""


async def test_requests_without_a_file_descriptor_fail_with_advice(server: Any) -> None:
    three_tokens = server.script

    async def holds(request: Any) -> None:
        await asyncio.sleep(0.5)  # so that all are in flight at once
        await three_tokens(request)

    server.script = holds
    child = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", FEW_FILES, server.url],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    outcomes = [tuple(each) for each in json.loads(child.stdout)]
    assert len(outcomes) == 100
    assert set(outcomes) == {("ok", None), ("error", "too many open files: raise the limit with ulimit -n")}
    assert 10 < outcomes.count(("ok", None)) < 40
