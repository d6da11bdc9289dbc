"""Conversations dealt out to several senders: each stays with one of them, and together they are those of one."""

import os
import signal
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from servetop.core.config import StageConfig
from servetop.core.events import RequestRecord
from servetop.loadgen.worker.sender_state import LOST
from tests.loadgen.pool_run import answer_never, slow_tokens


def conversations(records: Sequence[RequestRecord]) -> list[list[RequestRecord]]:
    """Turns in order, by conversation; one sender has all of each."""
    grouped: dict[int | None, list[RequestRecord]] = defaultdict(list)
    for record in sorted(records, key=lambda each: each.turn or 0):
        grouped[record.conversation].append(record)
    for number, turns in grouped.items():
        assert [each.turn for each in turns] == list(range(1, len(turns) + 1))
        assert turns[0].id == number
        assert len({each.worker for each in turns}) == 1
    return list(grouped.values())


async def test_several_senders_have_the_conversations_of_one_at_its_times(server: Any, pool: Any) -> None:
    plays = []
    for workers in (1, 2, 3):
        before = len(server.served)
        run = await pool(workers, num_turns="uniform:min=1,max=4", think_time="20ms")
        await run.begin(StageConfig(request_rate=60.0, num_prompts=9), StageConfig(request_rate=90.0, num_prompts=9))
        await run.finish()
        began = min(stage.at for report in run.reports for stage in report.stages)
        talks = conversations(run.records)
        times = sorted((round(turns[0].due - began, 6), len(turns)) for turns in talks)
        asked = sorted(request.content["prompt"] for request in server.served[before:])
        plays.append((times, asked))
        assert len(talks) == 18
        assert {record.worker for record in run.records} == set(range(workers))
        assert len({record.id for record in run.records}) == len(run.records)
    assert plays[0] == plays[1] == plays[2]


async def test_users_of_a_closed_loop_are_as_many_as_with_one_sender_and_have_the_same_conversations(
    server: Any, pool: Any
) -> None:
    server.script = slow_tokens
    asked = []
    for workers in (1, 2):
        before = len(server.served)
        run = await pool(workers, num_turns="2", think_time="10ms")
        await run.begin(StageConfig(max_concurrency=4, num_prompts=12))
        await run.finish()
        assert [len(turns) for turns in conversations(run.records)] == [2] * 12
        asked.append(sorted(request.content["prompt"] for request in server.served[before:]))
    assert asked[0] == asked[1]
    assert server.most_active == 4


async def test_conversations_go_on_when_the_next_stage_begins(server: Any, pool: Any) -> None:
    server.script = slow_tokens
    run = await pool(2, num_turns="400")
    await run.begin(StageConfig(max_concurrency=2, duration=0.6), StageConfig(max_concurrency=2, duration=0.6))
    await run.finish()
    assert [{each.stage for each in turns} for turns in conversations(run.records)] == [{0, 1}] * 2
    assert run.notes
    assert [note for note in run.notes if "cut short" in note] == run.notes  # by the end of the last stage


async def test_a_sender_that_dies_takes_its_conversations_along_and_the_others_open_new_ones(
    server: Any, pool: Any
) -> None:
    server.script = answer_never
    run = await pool(2, num_turns="3")
    await run.begin(StageConfig(request_rate=60.0, duration=60.0))
    await run.until(lambda report: report.tick.gauges.in_flight >= 12)
    server.script = slow_tokens
    os.kill(run.pool.pids[1], signal.SIGKILL)
    await run.until(lambda report: any("died" in note.text for note in report.notes))
    lost = [record for record in run.records if record.error == LOST]
    assert lost
    assert {(each.worker, each.turn, each.conversation == each.id) for each in lost} == {(1, 1, True)}
    (words,) = [note for note in run.notes if "died" in note]
    assert words.endswith("; its conversations end")
    seen = len(run.reports)
    await run.until(lambda _: any(each.turn == 3 for report in run.reports[seen:] for each in report.records))
    assert {each.worker for report in run.reports[seen:] for each in report.records} == {0}
    assert len({record.id for record in run.records}) == len(run.records)
