"""A sender against a real server: what it sends, when, and what it reports."""

import asyncio
import json
import math
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus, TokenSource
from servetop.core.tick import TICK_SECONDS
from tests.loadgen.load_run import slow_response

Start = Callable[..., Any]
needs_stamps = pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps what arrives")


async def test_an_open_loop_sends_and_records_every_request(server: Any, start: Start) -> None:
    run = start(server.url, burstiness=math.inf)
    run.begin(StageConfig(request_rate=40.0, duration=0.5))
    await run.finish()
    assert [record.status for record in run.records] == [RequestStatus.OK] * 20
    first = run.records[0]
    dues = [record.due - first.due for record in run.records]
    assert dues == pytest.approx([index / 40 for index in range(20)])
    for record in run.records:
        assert record.due <= record.sent <= record.headers_at <= record.first_token_at <= record.done_at
        assert (record.prompt_tokens, record.output_tokens, record.token_source) == (5, 3, TokenSource.USAGE)
        assert record.chunk_times[0] == record.first_token_at
        assert list(record.chunk_tokens) == [1, 1, 1]


async def test_ticks_are_consecutive_and_add_up_to_the_records(server: Any, start: Start) -> None:
    run = start(server.url)
    run.begin(StageConfig(request_rate=60.0, duration=0.7))
    await run.finish()
    count, total = len(run.records), run.total
    indexes = [report.tick.index for report in run.reports]
    assert indexes == list(range(indexes[0], indexes[0] + len(indexes)))
    assert (total.due, total.sent, total.ok, total.failed, total.cancelled) == (count, count, count, 0, 0)
    assert (total.output_tokens, total.prompt_tokens, total.chunks) == (3 * count, 5 * count, 3 * count)
    assert (total.ttft.count, total.slip.count, total.e2el.count) == (count, count, count)
    assert total.itl.count == 2 * count
    assert total.loop_lag.count > 0.5 * len(indexes) * TICK_SECONDS / 0.020
    assert total.cpu_seconds > 0
    assert (total.gauges.in_flight, total.gauges.queued, total.gauges.request_rate) == (0, 0, None)


async def test_a_request_has_the_head_and_body_of_the_dialect(server: Any, start: Start) -> None:
    run = start(server.url + "/proxy/v1/", api_key="sk-1")
    run.begin(StageConfig(num_prompts=2))
    await run.finish()
    head = server.served[0].head
    assert head.startswith("POST /proxy/v1/completions HTTP/1.1\r\n")
    assert f"host: 127.0.0.1:{server.port}\r\n" in head
    assert "authorization: Bearer sk-1\r\n" in head
    assert len(server.served[0].content["prompt"]) == 5
    ids = {line for each in server.served for line in each.head.split("\r\n") if line.startswith("x-request-id")}
    assert len(ids) == 2


async def test_the_most_recently_used_connection_is_reused_first(server: Any, start: Start) -> None:
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=1, num_prompts=20))
    await run.finish()
    assert {request.connection for request in server.served} == {1}


async def test_connections_are_opened_before_the_load_begins(server: Any, start: Start) -> None:
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=6, num_prompts=6), ahead=60.0)
    await run.until(lambda: server.connections == 6)
    assert server.served == []


async def test_chat_text_without_usage_is_an_estimate(server: Any, start: Start, sse_head: bytes) -> None:
    async def plain(request: Any) -> None:
        await request.raw(sse_head)
        for text in ("a", "b"):
            await request.event({"choices": [{"delta": {"content": text}}]})
        await request.end()

    server.script = plain
    run = start(server.url, endpoint="chat", continuous_usage=False, store_texts=True)
    run.begin(StageConfig(num_prompts=1))
    await run.finish()
    (record,) = run.records
    assert (record.token_source, record.output_tokens, record.output_text) == (TokenSource.ESTIMATE, 2, "ab")
    assert len(record.prompt_text.split()) == 5


async def test_a_prompt_of_token_ids_is_recorded_as_the_ids_sent(server: Any, start: Start) -> None:
    run = start(server.url, store_texts=True)
    run.begin(StageConfig(num_prompts=1))
    await run.finish()
    (record,) = run.records
    (sent,) = server.served
    assert json.loads(record.prompt_text) == sent.content["prompt"]
    assert len(sent.content["prompt"]) == 5


async def test_tokens_known_only_from_the_final_usage_are_in_the_ticks(
    server: Any, start: Start, sse_head: bytes
) -> None:
    async def merges(request: Any) -> None:
        await request.raw(sse_head)
        await request.event({"choices": [{"text": "abc"}]})
        await request.event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 4}})
        await request.end()

    server.script = merges
    run = start(server.url)
    run.begin(StageConfig(num_prompts=2))
    await run.finish()
    assert (run.total.output_tokens, run.total.prompt_tokens, run.total.chunks) == (8, 14, 2)


async def test_the_wait_for_a_concurrency_limit_is_counted_apart_from_slip(server: Any, start: Start) -> None:
    all_are_due = asyncio.Event()

    async def queued(request: Any) -> None:
        await all_are_due.wait()
        await slow_response(request)

    server.script = queued
    run = start(server.url, burstiness=math.inf)
    run.begin(StageConfig(request_rate=40.0, max_concurrency=2, duration=0.2))
    await run.until(lambda: run.reports and run.reports[-1].tick.gauges.queued == 6)
    all_are_due.set()
    await run.finish()
    assert server.most_active == 2
    assert [record.status for record in run.records] == [RequestStatus.OK] * 8
    total, waits = run.total, [record.sent - record.due for record in run.records]
    assert (total.slip.count, total.client_wait.count) == (2, 6)
    assert total.slip.total == pytest.approx(sum(waits[:2]))
    assert total.client_wait.total == pytest.approx(sum(waits[2:]))
    assert waits[-1] > 0.5


async def test_the_concurrency_limit_holds_although_the_sender_was_blocked_for_the_whole_stage(
    server: Any, start: Start
) -> None:
    server.script = lambda request: asyncio.sleep(30)
    run = start(server.url, burstiness=math.inf)
    run.begin(StageConfig(request_rate=200.0, max_concurrency=1, duration=0.1), drain_timeout=0.5)
    threading.Event().wait(0.2)
    await run.finish()
    assert len(run.records) == 20
    assert sum(record.sent is not None for record in run.records) <= 1


async def test_stages_are_reported_and_recorded_with_each_request(server: Any, start: Start) -> None:
    run = start(server.url, burstiness=math.inf)
    run.begin(StageConfig(request_rate=20.0, duration=0.3), StageConfig(request_rate=40.0, duration=0.3))
    await run.finish()
    first, second = [stage for report in run.reports for stage in report.stages]
    assert second.at == pytest.approx(first.at + 0.3)
    assert [record.stage for record in run.records] == [0] * 6 + [1] * 12
    assert run.records[6].due == pytest.approx(second.at)


async def test_draining_between_stages_leaves_nothing_in_flight(server: Any, start: Start) -> None:
    server.script = slow_response
    run = start(server.url)
    run.begin(StageConfig(num_prompts=2), StageConfig(num_prompts=2), drain=True)
    await run.finish()
    one, two, three, four = run.records
    assert max(one.done_at, two.done_at) <= min(three.due, four.due)
    assert server.most_active == 2


async def test_a_drain_takes_no_longer_than_its_timeout(server: Any, start: Start) -> None:
    server.script = lambda request: asyncio.sleep(30)
    run = start(server.url, burstiness=math.inf)
    run.begin(StageConfig(request_rate=20.0, max_concurrency=1, duration=0.1), drain_timeout=1.0)
    await run.finish()
    sent, queued = run.records
    assert (sent.status, sent.error) == (RequestStatus.CANCELLED, "not finished within the drain timeout")
    assert (queued.status, queued.sent) == (RequestStatus.CANCELLED, None)
    assert queued.error == "not sent before the drain timeout"
    notes = [note.text for report in run.reports for note in report.notes]
    assert notes == ["drain timeout: 1 request in flight was cancelled"]


async def test_a_second_plan_continues_the_numbering(server: Any, start: Start) -> None:
    run = start(server.url)
    run.begin(StageConfig(num_prompts=2))
    await run.finish()
    reported = len(run.reports)
    run.begin(StageConfig(num_prompts=2))
    await run.until(lambda: len(run.records) == 4)
    await run.until(lambda: len(run.reports) > reported)
    assert [record.id for record in run.records] == [0, 1, 2, 3]


async def test_https_with_a_trusted_certificate(
    tls_server: Any, start: Start, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    run = start(tls_server.url)
    run.begin(StageConfig(max_concurrency=2, num_prompts=6))
    await run.finish()
    assert [(record.status, record.output_tokens) for record in run.records] == [(RequestStatus.OK, 3)] * 6
    assert tls_server.connections == 2


async def test_requests_can_be_sent_over_ipv6(ipv6_server: Any, start: Start) -> None:
    run = start(ipv6_server.url)
    run.begin(StageConfig(num_prompts=1))
    await run.finish()
    assert [record.status for record in run.records] == [RequestStatus.OK]
    assert f"host: [::1]:{ipv6_server.port}\r\n" in ipv6_server.served[0].head


@needs_stamps
async def test_ticks_count_the_chunks_with_kernel_timestamps(server: Any, start: Start) -> None:
    for _ in range(20):  # on a busy machine events are read together, and then have no time of their own
        run = start(server.url)
        run.begin(StageConfig(request_rate=50.0, num_prompts=5))
        await run.finish()
        assert run.total.chunks == 15
        if run.total.stamped == 15:
            return
    pytest.fail("no run had a timestamp of each chunk")


@needs_stamps
async def test_a_response_that_waited_to_be_read_does_not_count_as_timestamped(server: Any, start: Start) -> None:
    async def all_at_once(request: Any) -> None:
        event = b'data: {"choices": [{"index": 0, "text": " a"}], "usage": null}\n\n' * 2000
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        await request.raw(head + b"%x\r\n%b\r\n" % (len(event), event))
        await request.end()

    server.script = all_at_once
    run = start(server.url, continuous_usage=False)
    run.begin(StageConfig(request_rate=50.0, num_prompts=3))
    await run.finish()
    assert (run.total.chunks, run.total.stamped) == (6000, 0)


async def test_a_closed_sender_opens_no_connection(server: Any, start: Start) -> None:
    run = start(server.url)
    await run.sender.close()
    before = asyncio.all_tasks()
    run.sender._transport.keep_ready(3)
    assert asyncio.all_tasks() == before
