"""Several real sender processes together send one load."""

from typing import Any

from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig
from servetop.core.events import Action, RequestStatus
from servetop.core.tick import merge_client_ticks
from servetop.loadgen.worker.sender_handle import SenderHandle
from servetop.loadgen.worker.start_senders import start_senders
from servetop.workload.stages.plan import LoadPhase
from tests.loadgen.load_run import ARGV, respond_never, setup_for, slow_response, slow_tokens


async def test_requests_and_due_times_do_not_depend_on_the_number_of_senders(server: Any, pool: Any) -> None:
    stages = (StageConfig(request_rate=60.0, duration=0.5), StageConfig(request_rate=100.0, num_prompts=40))
    plays = []
    for workers in (1, 2, 3):
        before = len(server.served)
        run = await pool(workers)
        await run.begin(*stages)
        await run.finish()
        began = run.reports and min(stage.at for report in run.reports for stage in report.stages)
        requests = [(record.id, record.stage, round(record.due - began, 6)) for record in run.records]
        prompts = {str(request.content["prompt"]) for request in server.served[before:]}
        plays.append((requests, prompts))
        assert {record.worker for record in run.records} == set(range(workers))
        assert all(record.status is RequestStatus.OK for record in run.records)
        assert [stage.index for report in run.reports for stage in report.stages] == [0, 1]
    assert plays[0] == plays[1] == plays[2]
    assert plays[0][0][0][0] == 100


async def test_the_ticks_of_several_senders_are_merged(pool: Any) -> None:
    run = await pool(2)
    await run.begin(StageConfig(request_rate=80.0, num_prompts=40))
    await run.finish()
    ticks = [report.tick for report in run.reports]
    assert [tick.index for tick in ticks] == list(range(ticks[0].index, ticks[-1].index + 1))
    total = merge_client_ticks(ticks, gauges=ticks[-1].gauges)
    assert (total.due, total.sent, total.ok, total.output_tokens) == (40, 40, 40, 120)
    assert total.ttft.count == 40
    assert {gauges.request_rate for gauges in run.gauges} == {None, 80.0}


async def test_the_total_concurrency_reaches_the_limit_and_never_exceeds_it(server: Any, pool: Any) -> None:
    server.script = slow_tokens
    run = await pool(3)
    await run.begin(StageConfig(max_concurrency=5, num_prompts=32))
    await run.finish()
    assert server.most_active == 5
    assert len(run.records) == 32
    assert len({record.id for record in run.records}) == 32
    assert max(gauges.max_concurrency or 0 for gauges in run.gauges) == 5


async def test_a_limit_below_the_number_of_senders_leaves_some_idle(server: Any, pool: Any) -> None:
    server.script = slow_tokens
    run = await pool(3)
    await run.begin(StageConfig(max_concurrency=1, num_prompts=4), StageConfig(max_concurrency=2, num_prompts=4))
    await run.finish()
    assert server.most_active == 2
    workers = [{record.worker for record in run.records if record.stage == stage} for stage in (0, 1)]
    assert workers == [{0}, {0, 1}]
    assert len({record.id for record in run.records}) == 8


async def test_a_new_limit_applies_to_the_whole_pool(server: Any, pool: Any) -> None:
    server.script = slow_tokens
    run = await pool(3)
    await run.begin_and_wait(StageConfig(max_concurrency=2, duration=60.0))
    await run.command(Action.SET_CONCURRENCY, 7)
    await run.until(lambda report: report.tick.gauges.in_flight == 7)
    await run.command(Action.SET_CONCURRENCY, 1)
    await run.until(lambda report: report.tick.gauges.in_flight == 1 and report.tick.gauges.max_concurrency == 1)
    await run.command(Action.CANCEL)
    await run.finish()
    assert run.replies == ["at most 7 concurrent requests", "at most 1 concurrent request", "1 request cancelled"]
    assert server.most_active == 7
    assert len({record.id for record in run.records}) == len(run.records)


async def test_all_senders_close_and_open_the_loop(server: Any, pool: Any) -> None:
    server.script = slow_response
    run = await pool(3)
    await run.begin_and_wait(StageConfig(request_rate=20.0, duration=60.0))
    await run.command(Action.CLOSE_LOOP, 5)
    await run.until(lambda report: report.tick.gauges.in_flight == report.tick.gauges.max_concurrency == 5)
    await run.command(Action.OPEN_LOOP, 30.0)
    await run.until(lambda report: report.tick.gauges.request_rate == 30.0 and report.tick.gauges.in_flight > 5)
    await run.command(Action.CANCEL)
    await run.finish()
    assert run.replies[:2] == [
        "closed loop: 5 concurrent requests, each sent when another ends",
        "open loop: sending 30 requests/s, regardless of requests in flight",
    ]
    assert len({record.id for record in run.records}) == len(run.records)


async def test_a_stage_whose_requests_are_divided_keeps_its_loop(pool: Any) -> None:
    run = await pool(2)
    await run.begin(StageConfig(request_rate=5.0, num_prompts=100))
    await run.until(lambda report: report.tick.sent)
    for action, value in ((Action.CLOSE_LOOP, 4), (Action.OPEN_LOOP, 8.0), (Action.CANCEL, None)):
        await run.command(action, value)
        await run.until(lambda report: report.replies)
    await run.finish()
    assert run.replies[0].endswith("already divided among several senders")
    assert run.replies[1] == "open loop: sending 8 requests/s, regardless of requests in flight"


async def test_all_senders_apply_a_command_at_one_time_with_one_reply(pool: Any) -> None:
    run = await pool(2)
    await run.begin(StageConfig(request_rate=20.0, duration=60.0), StageConfig(request_rate=20.0, duration=60.0))
    await run.until(lambda report: report.tick.sent)
    await run.command(Action.SET_RATE, 100.0)
    await run.until(lambda report: report.replies)
    await run.command(Action.BURST, 7)
    await run.until(lambda report: report.replies)
    await run.command(Action.NEXT_STAGE)
    await run.until(lambda report: report.stages)
    await run.command(Action.PAUSE_LOAD)
    await run.until(lambda report: report.tick.gauges.paused and not report.tick.sent)
    await run.command(Action.STOP)
    await run.finish()
    assert run.replies[:3] == ["sending 100 requests/s", "sending 7 requests now", "stage ended, 1 remaining"]
    dues = [record.due for record in run.records]
    (burst,) = {due for due in dues if dues.count(due) == 7}
    assert {record.worker for record in run.records if record.due == burst} == {0, 1}
    assert [record.id for record in run.records] == list(range(100, 100 + len(run.records)))


async def test_the_reply_to_a_stop_counts_the_requests_of_all_senders(server: Any, pool: Any) -> None:
    server.script = respond_never
    run = await pool(2)
    await run.begin(StageConfig(request_rate=200.0, num_prompts=9))
    await run.until(lambda report: report.tick.gauges.in_flight == 9)
    await run.command(Action.STOP)
    await run.until(lambda report: report.replies)
    await run.command(Action.CANCEL)
    await run.finish()
    assert run.replies == ["no further requests are sent, waiting for 9 requests in flight", "9 requests cancelled"]
    assert {record.status for record in run.records} == {RequestStatus.CANCELLED}


async def test_a_drained_stage_waits_for_the_slowest_sender(server: Any, pool: Any) -> None:
    server.script = slow_tokens
    run = await pool(2)
    stage = StageConfig(request_rate=50.0, num_prompts=10)
    await run.begin(stage, stage, drain=True)
    await run.finish()
    first, second = ([record for record in run.records if record.stage == index] for index in (0, 1))
    assert (len(first), len(second)) == (10, 10)
    assert max(record.done_at or 0 for record in first) < min(record.due for record in second)
    assert [record.id for record in run.records] == list(range(100, 120))


async def test_a_pool_plays_one_plan_after_another(pool: Any) -> None:
    run = await pool(2)
    await run.begin(StageConfig(max_concurrency=2, num_prompts=6))
    await run.finish()
    await run.begin(StageConfig(request_rate=50.0, num_prompts=5), first=1)
    await run.until(lambda report: report.state is LoadPhase.FINISHED and report.tick.gauges.stage == 1)
    assert [record.id for record in run.records] == list(range(100, 111))


async def test_random_cancellations_do_not_depend_on_the_number_of_senders(server: Any, pool: Any) -> None:
    server.script = respond_never
    cancelled = []
    for workers in (1, 2):
        run = await pool(workers, cancel_fraction=0.5, output_len=1)
        await run.begin(StageConfig(request_rate=100.0, num_prompts=12))
        await run.until(lambda report: report.tick.sent)
        await run.until(lambda report: report.state is LoadPhase.DRAINING and not report.tick.cancelled)
        cancelled.append([record.id for record in run.records])
    assert cancelled[0] == cancelled[1]
    assert 1 < len(cancelled[0]) < 11


async def test_one_worker_is_a_sender_without_a_pool(server: Any) -> None:
    sender = await start_senders(ARGV, setup_for(server.url, MonotonicClock()), workers=1)
    assert isinstance(sender, SenderHandle)
    await sender.close()


async def test_after_a_stop_a_stage_can_be_played_again_as_a_new_one(server: Any, pool: Any) -> None:
    server.script = slow_tokens
    run = await pool(2)
    await run.begin_and_wait(
        StageConfig(request_rate=50.0, duration=60.0), StageConfig(request_rate=50.0, duration=60.0)
    )
    await run.command(Action.STOP)
    await run.finish()
    first = len(run.records)
    await run.begin(StageConfig(request_rate=50.0, num_prompts=10), first=2)
    await run.until(lambda report: report.state is LoadPhase.FINISHED and report.tick.gauges.stage == 2)
    assert [stage.index for report in run.reports for stage in report.stages] == [0, 2]
    assert [record.id for record in run.records] == list(range(100, 100 + first + 10))


async def test_a_plan_that_replaces_one_under_way_sends_each_request_once(server: Any, pool: Any) -> None:
    run = await pool(2)
    await run.begin_and_wait(StageConfig(request_rate=100.0))
    await run.begin(StageConfig(request_rate=80.0, num_prompts=40), first=1)
    await run.finish()
    ids = [record.id for record in run.records]
    assert len(ids) == len(set(ids)) == len(server.served)
    replacing = [record for record in run.records if record.stage == 1]
    assert len(replacing) == 40
    assert {record.worker for record in replacing} == {0, 1}
    assert [stage.index for report in run.reports for stage in report.stages] == [0, 1]
    assert min(record.id for record in replacing) > max(record.id for record in run.records if record.stage == 0)
