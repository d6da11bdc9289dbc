"""Conversations under load: what is asked next, when, and what ends them."""

import asyncio
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import StageConfig
from servetop.core.events import Action, RequestRecord, RequestStatus

Start = Callable[..., Any]
TALK = {"turns": ["What is one?", "And two?", "And three?"]}
TOKENS = 3


@pytest.fixture
def talk(tmp_path: Path) -> dict[str, Any]:
    """Fields of a workload of conversations of three turns."""
    path = tmp_path / "talk.jsonl"
    path.write_text(json.dumps(TALK))
    return {"dataset": "conversations", "dataset_path": str(path), "endpoint": "chat"}


def answering(sse_head: bytes, *, gap: float = 0.0, chat: bool = True) -> Callable[[Any], Any]:
    """Each answer has a text of its own: `<n:1><n:2><n:3>` for request n as the server counts."""

    async def script(request: Any) -> None:
        await request.raw(sse_head)
        for count in range(1, TOKENS + 1):
            text = answer_of(request.number, count)
            choice = {"delta": {"content": text}} if chat else {"text": text}
            usage = {"prompt_tokens": 50, "completion_tokens": count, "prompt_tokens_details": {"cached_tokens": 7}}
            await request.event({"choices": [{"index": 0, **choice}], "usage": usage})
            await asyncio.sleep(gap)
        await request.end()

    return script


def answer_of(number: int, count: int) -> str:
    return f"<{number}:{count}>"


def whole_answer(number: int) -> str:
    return "".join(answer_of(number, count) for count in range(1, TOKENS + 1))


def conversations(records: Sequence[RequestRecord]) -> dict[int | None, list[RequestRecord]]:
    """Turns in order, by conversation."""
    grouped: dict[int | None, list[RequestRecord]] = {}
    for record in sorted(records, key=lambda each: each.turn or 0):
        grouped.setdefault(record.conversation, []).append(record)
    return grouped


def notes(run: Any) -> list[str]:
    return [note.text for report in run.reports for note in report.notes]


async def test_each_turn_carries_the_questions_before_it_and_the_answers_that_really_came(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes
) -> None:
    server.script = answering(sse_head)
    run = start(server.url, **talk)
    run.begin(StageConfig(max_concurrency=1, num_prompts=1))
    await run.finish()
    first, second, third = TALK["turns"]
    asked = [[message["content"] for message in request.content["messages"]] for request in server.served]
    assert asked == [
        [first],
        [first, whole_answer(0), second],
        [first, whole_answer(0), second, whole_answer(1), third],
    ]
    roles = [message["role"] for message in server.served[2].content["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert [(each.conversation, each.turn, each.cached_tokens) for each in run.records] == [
        (0, 1, 7), (0, 2, 7), (0, 3, 7),
    ]  # fmt: skip
    assert [each.prompt_text for each in run.records] == [None] * 3


def reasoning(sse_head: bytes) -> Callable[[Any], Any]:
    """Each answer is reasoned about first; the chunk in the middle has both."""

    async def script(request: Any) -> None:
        number = request.number
        thought, both = {"reasoning_content": f"hm {number}"}, {"reasoning_content": "!", "content": f"yes {number}"}
        if request.content["stream"]:
            await request.raw(sse_head)
            for delta in (thought, both, {"content": ", so"}):
                await request.event({"choices": [{"index": 0, "delta": delta}]})
            await request.event({"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 3}})
            await request.end()
            return
        message = {"role": "assistant", "content": f"yes {number}, so", **thought}
        body = json.dumps({"choices": [{"message": message}], "usage": {"prompt_tokens": 50, "completion_tokens": 3}})
        await request.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
        await request.raw(b"content-length: %d\r\n\r\n%b" % (len(body), body.encode()))

    return script


@pytest.mark.parametrize("stream", [True, False])
async def test_the_history_holds_the_answers_without_the_models_reasoning(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes, stream: bool
) -> None:
    server.script = reasoning(sse_head)
    run = start(server.url, **talk, store_texts=True, stream=stream)
    run.begin(StageConfig(max_concurrency=1, num_prompts=1))
    await run.finish()
    first, second, third = TALK["turns"]
    asked = [[message["content"] for message in request.content["messages"]] for request in server.served]
    assert asked == [[first], [first, "yes 0, so", second], [first, "yes 0, so", second, "yes 1, so", third]]
    told = "hm 0yes 0!, so" if stream else "yes 0, sohm 0"
    assert run.records[0].output_text == told  # the recording has all of it


async def test_a_wire_of_one_text_gets_all_that_was_said_as_one_text(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes
) -> None:
    server.script = answering(sse_head, chat=False)
    run = start(server.url, **{**talk, "endpoint": "completions"}, store_texts=True)
    run.begin(StageConfig(max_concurrency=1, num_prompts=1))
    await run.finish()
    first, second, third = TALK["turns"]
    told = f"{first}{whole_answer(0)}\n\n{second}"
    assert [request.content["prompt"] for request in server.served] == [
        first, told, f"{told}{whole_answer(1)}\n\n{third}",
    ]  # fmt: skip
    assert run.records[1].prompt_text == told
    assert run.records[1].output_text == whole_answer(1)


async def test_a_turn_is_due_when_its_user_has_thought_and_is_never_sent_before(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes
) -> None:
    server.script = answering(sse_head, gap=0.005)
    run = start(server.url, **talk, think_time="60ms")
    run.begin(StageConfig(request_rate=50.0, num_prompts=6))
    await run.finish()
    talks = conversations(run.records)
    assert sorted(len(turns) for turns in talks.values()) == [3] * 6
    assert all(number == turns[0].id for number, turns in talks.items())
    for before, after in (pair for turns in talks.values() for pair in itertools.pairwise(turns)):
        assert after.due == pytest.approx((before.done_at or 0.0) + 0.06, abs=1e-9)
        assert (after.sent or 0.0) >= after.due
    assert run.total.due == run.total.sent == 18
    assert notes(run) == []


async def test_a_closed_loop_has_so_many_users_and_the_next_one_comes_when_a_conversation_is_over(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes
) -> None:
    server.script = answering(sse_head)
    run = start(server.url, **talk, think_time="40ms")
    run.begin(StageConfig(max_concurrency=2, num_prompts=6))
    await run.finish()
    talks = conversations(run.records)
    assert [len(turns) for turns in talks.values()] == [3] * 6
    begun = sorted(turns[0].due for turns in talks.values())
    over = sorted(turns[-1].done_at or 0.0 for turns in talks.values())
    for count, at in enumerate(begun):
        assert sum(end <= at + 1e-9 for end in over) >= count + 1 - 2  # never more than two conversations open
    assert begun[2:] == pytest.approx(over[:4])  # no thinking between two users


async def test_a_turn_that_fails_ends_its_conversation_and_the_run_says_so(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes
) -> None:
    answer = answering(sse_head)

    async def second_fails(request: Any) -> None:
        if len(request.content["messages"]) == 3:
            await request.status("400 Bad Request", b'{"error": {"message": "too long"}}')
        else:
            await answer(request)

    server.script = second_fails
    run = start(server.url, **talk)
    run.begin(StageConfig(request_rate=200.0, num_prompts=4))
    await run.finish()
    assert sorted((each.turn, each.status) for each in run.records) == [
        *[(1, RequestStatus.OK)] * 4, *[(2, RequestStatus.ERROR)] * 4,
    ]  # fmt: skip
    assert notes(run) == ["4 conversations ended early, with a turn that did not end well"]


async def test_a_stage_that_ends_by_its_time_lets_the_turn_in_flight_finish_and_no_further_one_begin(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes
) -> None:
    server.script = answering(sse_head)
    run = start(server.url, **talk, think_time="10")
    run.begin(StageConfig(max_concurrency=3, duration=0.2))
    await run.finish()
    assert [(each.turn, each.status) for each in run.records] == [(1, RequestStatus.OK)] * 3
    assert notes(run) == ["3 conversations were cut short by the end of the load"]


async def test_stop_lets_no_further_turn_begin(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes
) -> None:
    server.script = answering(sse_head)
    run = start(server.url, **talk, think_time="10")
    run.begin(StageConfig(max_concurrency=3, num_prompts=3))
    await run.until(lambda: len(run.records) == 3)
    run.tell(Action.STOP)
    await run.finish()
    assert len(run.records) == 3
    assert notes(run) == ["3 conversations were cut short by the end of the load"]


async def test_a_drain_has_its_time_from_the_last_turn_on(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes
) -> None:
    server.script = answering(sse_head)
    for patience in (0.15, 1.0, 6.0):  # a loaded machine may not answer within the first
        run = start(server.url, **talk, think_time=str(2 * patience))
        run.begin(StageConfig(num_prompts=2), drain_timeout=patience)  # all due at once: turns come while it drains
        await run.finish()
        turns = [(each.turn, each.status) for each in sorted(run.records, key=lambda each: each.due)]
        if turns == [(turn, RequestStatus.OK) for turn in (1, 1, 2, 2, 3, 3)]:
            return
    raise AssertionError(turns)


async def test_a_turn_is_counted_in_the_stage_in_which_it_is_due(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes
) -> None:
    server.script = answering(sse_head)
    run = start(server.url, **talk, think_time="100ms")
    run.begin(StageConfig(request_rate=100.0, num_prompts=1), StageConfig(request_rate=0.001, duration=0.5))
    await run.finish()
    assert [(each.turn, each.stage) for each in run.records] == [(1, 0), (2, 1), (3, 1)]


async def test_a_conversation_beyond_the_models_context_ends_only_where_lengths_are_clipped(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes
) -> None:
    server.script = answering(sse_head)  # says 50 + 3 tokens for each turn, whatever it was
    run = start(server.url, **talk, max_model_len=55, clip_lengths=True)
    run.begin(StageConfig(max_concurrency=1, num_prompts=2))
    await run.finish()
    assert [each.turn for each in run.records] == [1, 1]
    assert notes(run) == [
        "2 conversations ended early, because the next turn would be beyond the model's longest context"
    ]
    server.served.clear()
    run = start(server.url, **talk, max_model_len=55)
    run.begin(StageConfig(max_concurrency=1, num_prompts=2))
    await run.finish()
    assert [each.turn for each in run.records] == [1, 2, 3, 1, 2, 3]


async def test_a_pause_holds_the_next_turns_back_and_says_how_long(
    start: Start, server: Any, talk: dict[str, Any], sse_head: bytes
) -> None:
    server.script = answering(sse_head)
    run = start(server.url, **talk, think_time="400ms")
    run.begin(StageConfig(max_concurrency=2, num_prompts=3))
    await run.until(lambda: len(run.records) >= 2)
    run.tell(Action.PAUSE_LOAD)
    await run.until(lambda: run.reports[-1].tick.gauges.queued == 2)
    run.tell(Action.RESUME_LOAD)
    await run.finish()
    assert len(run.records) == 9
    assert run.total.client_wait.count == 2
