"""Conversations divided among several senders: each stays with one sender, and all equal those of a single sender."""

import os
import signal
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from servetop.core.config import StageConfig
from servetop.core.events import RequestRecord
from servetop.loadgen.worker.sender_state import LOST
from tests.loadgen.load_run import respond_never, slow_tokens


def conversations(records: Sequence[RequestRecord]) -> list[list[RequestRecord]]:
    """Return the turns in order, by conversation; one sender sends all of them."""
    grouped: dict[int | None, list[RequestRecord]] = defaultdict(list)
    for record in sorted(records, key=lambda each: each.turn or 0):
        grouped[record.conversation].append(record)
    for number, turns in grouped.items():
        assert [each.turn for each in turns] == list(range(1, len(turns) + 1))
        assert turns[0].id == number
        assert len({each.worker for each in turns}) == 1
    return list(grouped.values())


async def test_conversations_do_not_depend_on_the_number_of_senders(server: Any, pool: Any) -> None:
    results = []
    for workers in (1, 2, 3):
        before = len(server.served)
        run = await pool(workers, num_turns="uniform:min=1,max=4", think_time="20ms")
        await run.begin(StageConfig(request_rate=60.0, num_prompts=9), StageConfig(request_rate=90.0, num_prompts=9))
        await run.finish()
        began = min(stage.at for report in run.reports for stage in report.stages)
        grouped = conversations(run.records)
        times = sorted((round(turns[0].due - began, 6), len(turns)) for turns in grouped)
        prompts = sorted(request.content["prompt"] for request in server.served[before:])
        results.append((times, prompts))
        assert len(grouped) == 18
        assert {record.worker for record in run.records} == set(range(workers))
        assert len({record.id for record in run.records}) == len(run.records)
    assert results[0] == results[1] == results[2]


async def test_closed_loop_users_and_their_conversations_do_not_depend_on_the_number_of_senders(
    server: Any, pool: Any
) -> None:
    server.script = slow_tokens
    prompts = []
    for workers in (1, 2):
        before = len(server.served)
        run = await pool(workers, num_turns="2", think_time="10ms")
        await run.begin(StageConfig(max_concurrency=4, num_prompts=12))
        await run.finish()
        assert [len(turns) for turns in conversations(run.records)] == [2] * 12
        prompts.append(sorted(request.content["prompt"] for request in server.served[before:]))
    assert prompts[0] == prompts[1]
    assert server.most_active == 4


async def test_conversations_continue_in_the_next_stage(server: Any, pool: Any) -> None:
    server.script = slow_tokens
    run = await pool(2, num_turns="400")
    await run.begin(StageConfig(max_concurrency=2, duration=0.6), StageConfig(max_concurrency=2, duration=0.6))
    await run.finish()
    assert [{each.stage for each in turns} for turns in conversations(run.records)] == [{0, 1}] * 2
    ends = [note for note in run.notes if "conversation" in note]  # others may be about a busy machine
    assert ends
    assert [note for note in ends if "cut short" in note] == ends  # by the end of the last stage


async def test_when_a_sender_dies_its_conversations_end_and_the_others_start_new_ones(server: Any, pool: Any) -> None:
    server.script = respond_never
    run = await pool(2, num_turns="3")
    await run.begin(StageConfig(request_rate=60.0, duration=60.0))
    await run.until(lambda report: report.tick.gauges.in_flight >= 12)
    server.script = slow_tokens
    os.kill(run.pool.pids[1], signal.SIGKILL)
    await run.until(lambda report: any("died" in note.text for note in report.notes))
    lost = [record for record in run.records if record.error == LOST]
    assert lost
    assert {(each.worker, each.turn, each.conversation == each.id) for each in lost} == {(1, 1, True)}
    (note,) = [note for note in run.notes if "died" in note]
    assert note.endswith("; its conversations end")
    seen = len(run.reports)
    await run.until(lambda _: any(each.turn == 3 for report in run.reports[seen:] for each in report.records))
    assert {each.worker for report in run.reports[seen:] for each in report.records} == {0}
    assert len({record.id for record in run.records}) == len(run.records)
