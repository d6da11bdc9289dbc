"""A closed loop against a real server: concurrency, think time, warm-up."""

from collections.abc import Callable
from typing import Any

import pytest

from servetop.core.config import StageConfig
from servetop.core.events import RequestRecord, RequestStatus
from servetop.loadgen.request.record import build_record
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.sender import report_builder
from tests.loadgen.load_run import slow_response
from tests.loadgen.scripted_server import SSE_HEAD, Served

Start = Callable[..., Any]


async def test_a_closed_loop_keeps_its_concurrency(server: Any, start: Start) -> None:
    server.script = slow_response
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=3, duration=0.7))
    await run.finish()
    assert server.most_active == 3
    assert 3 <= len(run.records) <= 9
    ends = sorted(record.done_at for record in run.records)
    dues = sorted(record.due for record in run.records)
    assert all(due in ends for due in dues[3:])
    assert run.total.client_wait.count == 0


async def test_a_closed_loop_request_is_due_one_think_time_after_the_previous_one_ended(
    start: Callable[..., Any], server: Any
) -> None:
    run = start(server.url, think_time="300ms")
    run.begin(StageConfig(max_concurrency=2, num_prompts=6))
    await run.finish()
    assert [record.status for record in run.records] == [RequestStatus.OK] * 6
    ends = sorted(record.done_at for record in run.records)
    dues = sorted(record.due for record in run.records)
    assert dues[2:] == pytest.approx([end + 0.3 for end in ends[:4]])
    assert server.most_active <= 2


async def test_warm_up_requests_end_before_the_next_stage_starts(start: Callable[..., Any], server: Any) -> None:
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=2, num_prompts=4, warmup=True), StageConfig(request_rate=50.0, num_prompts=5))
    await run.finish()
    warm = [record for record in run.records if record.stage == 0]
    measured = [record for record in run.records if record.stage == 1]
    assert (len(warm), len(measured)) == (4, 5)
    assert max(record.done_at for record in warm) <= min(record.due for record in measured)
    assert [change.warmup for report in run.reports for change in report.stages] == [True, False]


async def test_responses_that_end_together_are_parsed_and_recorded_after_the_next_requests_are_sent(
    start: Start, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[Served] = []

    async def end_together(request: Served) -> None:
        waiting.append(request)
        await request.raw(SSE_HEAD)
        await request.token(1)

    def first_token(request: RequestState) -> None:
        count_chunks(request)
        if request.first_token_at is not None:
            begun.add(request.id)
        if len(begun) == 3:
            for each in waiting:
                each.writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
            waiting.clear()
            begun.clear()

    def record(request: RequestState, *, worker: int) -> RequestRecord:
        steps.append("recorded")
        return build_record(request, worker=worker)

    def sent(request: RequestState) -> None:
        steps.append("sent")
        count(request)

    def parsed(request: RequestState, at: float) -> None:
        steps.append("parsed")
        body_complete(request, at)

    body_complete = RequestState.body_complete
    monkeypatch.setattr(RequestState, "body_complete", parsed)
    steps: list[str] = []
    begun: set[int] = set()
    monkeypatch.setattr(report_builder, "build_record", record)
    server.script = end_together
    run = start(server.url)
    count, run.sender.request_sent = run.sender.request_sent, sent
    count_chunks, run.sender.chunks_received = run.sender.chunks_received, first_token
    run.begin(StageConfig(max_concurrency=3, num_prompts=9))
    await run.finish()
    ended = ["parsed"] * 3 + ["recorded"] * 3
    assert steps == ["sent"] * 3 + (["sent"] * 3 + ended) * 2 + ended
    assert [record.status for record in run.records] == [RequestStatus.OK] * 9
    assert {record.due for record in run.records[3:]} <= {record.done_at for record in run.records}


async def test_an_error_in_the_last_part_of_a_response_is_recorded_although_the_next_request_is_sent(
    start: Start, server: Any
) -> None:
    async def fails_at_the_end(request: Served) -> None:
        await request.raw(SSE_HEAD)
        await request.token(1)
        event = b'data: {"error": {"message": "out of blocks"}}\n\n'
        await request.raw(b"%x\r\n%b\r\n0\r\n\r\n" % (len(event), event))

    server.script = fails_at_the_end
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=2, num_prompts=6))
    await run.finish()
    assert [(record.status, record.error) for record in run.records] == [
        (RequestStatus.ERROR, "the server reports in the stream: out of blocks")
    ] * 6
    assert server.most_active <= 2
