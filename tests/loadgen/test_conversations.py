"""Conversations under load: the next turn, its due time, and what ends them."""

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
CONVERSATION = {"turns": ["What is one?", "And two?", "And three?"]}
TOKENS = 3


@pytest.fixture
def conversation(tmp_path: Path) -> dict[str, Any]:
    """Fields of a workload of conversations of three turns."""
    path = tmp_path / "conversation.jsonl"
    path.write_text(json.dumps(CONVERSATION))
    return {"dataset": "conversations", "dataset_path": str(path), "endpoint": "chat"}


def responding(sse_head: bytes, *, gap: float = 0.0, chat: bool = True) -> Callable[[Any], Any]:
    """Respond with a distinct text: `<n:1><n:2><n:3>` to the server's n-th request."""

    async def script(request: Any) -> None:
        await request.raw(sse_head)
        for count in range(1, TOKENS + 1):
            text = completion_part(request.number, count)
            choice = {"delta": {"content": text}} if chat else {"text": text}
            usage = {"prompt_tokens": 50, "completion_tokens": count, "prompt_tokens_details": {"cached_tokens": 7}}
            await request.event({"choices": [{"index": 0, **choice}], "usage": usage})
            await asyncio.sleep(gap)
        await request.end()

    return script


@pytest.fixture
def converse(start: Start, server: Any, conversation: dict[str, Any], sse_head: bytes) -> Start:
    """Start a run of three-turn conversations with fields of WorkloadConfig; `gap`: seconds between tokens."""

    def started(*, gap: float = 0.0, **options: Any) -> Any:
        server.script = responding(sse_head, gap=gap)
        return start(server.url, **conversation, **options)

    return started


def completion_part(number: int, count: int) -> str:
    return f"<{number}:{count}>"


def full_completion(number: int) -> str:
    return "".join(completion_part(number, count) for count in range(1, TOKENS + 1))


def conversations(records: Sequence[RequestRecord]) -> dict[int | None, list[RequestRecord]]:
    """Return the turns in order, by conversation."""
    grouped: dict[int | None, list[RequestRecord]] = {}
    for record in sorted(records, key=lambda each: each.turn or 0):
        grouped.setdefault(record.conversation, []).append(record)
    return grouped


def notes(run: Any) -> list[str]:
    """The notes about turns; the small datasets of these tests are also noted as repeated."""
    found = [note.text for report in run.reports for note in report.notes]
    return [text for text in found if "a prefix cache finds repeated prompts" not in text]


async def test_each_turn_carries_the_earlier_prompts_and_the_completions_received(converse: Start, server: Any) -> None:
    run = converse()
    run.begin(StageConfig(max_concurrency=1, num_prompts=1))
    await run.finish()
    first, second, third = CONVERSATION["turns"]
    sent_messages = [[message["content"] for message in request.content["messages"]] for request in server.served]
    assert sent_messages == [
        [first],
        [first, full_completion(0), second],
        [first, full_completion(0), second, full_completion(1), third],
    ]
    roles = [message["role"] for message in server.served[2].content["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert [(each.conversation, each.turn, each.cached_tokens) for each in run.records] == [
        (0, 1, 7), (0, 2, 7), (0, 3, 7),
    ]  # fmt: skip
    assert [each.prompt_text for each in run.records] == [None] * 3


def reasoning(sse_head: bytes) -> Callable[[Any], Any]:
    """Respond with reasoning first; the chunk in the middle contains reasoning and answer."""

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
async def test_the_history_contains_completions_without_reasoning(
    start: Start, server: Any, conversation: dict[str, Any], sse_head: bytes, stream: bool
) -> None:
    server.script = reasoning(sse_head)
    run = start(server.url, **conversation, store_texts=True, stream=stream)
    run.begin(StageConfig(max_concurrency=1, num_prompts=1))
    await run.finish()
    first, second, third = CONVERSATION["turns"]
    sent_messages = [[message["content"] for message in request.content["messages"]] for request in server.served]
    assert sent_messages == [[first], [first, "yes 0, so", second], [first, "yes 0, so", second, "yes 1, so", third]]
    expected = "hm 0yes 0!, so" if stream else "yes 0, sohm 0"
    assert run.records[0].output_text == expected  # the recording contains the reasoning too


async def test_a_dialect_without_messages_gets_the_history_as_one_text(
    start: Start, server: Any, conversation: dict[str, Any], sse_head: bytes
) -> None:
    server.script = responding(sse_head, chat=False)
    run = start(server.url, **{**conversation, "endpoint": "completions"}, store_texts=True)
    run.begin(StageConfig(max_concurrency=1, num_prompts=1))
    await run.finish()
    first, second, third = CONVERSATION["turns"]
    history = f"{first}{full_completion(0)}\n\n{second}"
    assert [request.content["prompt"] for request in server.served] == [
        first, history, f"{history}{full_completion(1)}\n\n{third}",
    ]  # fmt: skip
    assert run.records[1].prompt_text == history
    assert run.records[1].output_text == full_completion(1)


async def test_a_turn_is_due_after_the_think_time_and_never_sent_before(converse: Start) -> None:
    run = converse(gap=0.005, think_time="60ms")
    run.begin(StageConfig(request_rate=50.0, num_prompts=6))
    await run.finish()
    grouped = conversations(run.records)
    assert sorted(len(turns) for turns in grouped.values()) == [3] * 6
    assert all(number == turns[0].id for number, turns in grouped.items())
    for before, after in (pair for turns in grouped.values() for pair in itertools.pairwise(turns)):
        assert after.due == pytest.approx((before.done_at or 0.0) + 0.06, abs=1e-9)
        assert (after.sent or 0.0) >= after.due
    assert run.total.due == run.total.sent == 18
    assert notes(run) == []


async def test_a_closed_loop_starts_the_next_conversation_when_one_ends(converse: Start) -> None:
    run = converse(think_time="40ms")
    run.begin(StageConfig(max_concurrency=2, num_prompts=6))
    await run.finish()
    grouped = conversations(run.records)
    assert [len(turns) for turns in grouped.values()] == [3] * 6
    starts = sorted(turns[0].due for turns in grouped.values())
    over = sorted(turns[-1].done_at or 0.0 for turns in grouped.values())
    for count, at in enumerate(starts):
        assert sum(end <= at + 1e-9 for end in over) >= count + 1 - 2  # never more than two conversations open
    assert starts[2:] == pytest.approx(over[:4])  # no thinking between two users


async def test_a_failed_turn_ends_its_conversation_with_a_note(
    start: Start, server: Any, conversation: dict[str, Any], sse_head: bytes
) -> None:
    respond = responding(sse_head)

    async def second_fails(request: Any) -> None:
        if len(request.content["messages"]) == 3:
            await request.status("400 Bad Request", b'{"error": {"message": "too long"}}')
        else:
            await respond(request)

    server.script = second_fails
    run = start(server.url, **conversation)
    run.begin(StageConfig(request_rate=200.0, num_prompts=4))
    await run.finish()
    assert sorted((each.turn, each.status) for each in run.records) == [
        *[(1, RequestStatus.OK)] * 4, *[(2, RequestStatus.ERROR)] * 4,
    ]  # fmt: skip
    assert notes(run) == ["4 conversations ended early because a turn failed"]


async def test_when_a_stage_times_out_turns_in_flight_finish_and_no_other_starts(converse: Start) -> None:
    run = converse(think_time="10")
    run.begin(StageConfig(max_concurrency=3, duration=3.0))
    await run.finish()
    assert [(each.turn, each.status) for each in run.records] == [(1, RequestStatus.OK)] * 3
    assert notes(run) == ["3 conversations were cut short by the end of the load"]


async def test_after_a_stop_no_further_turn_starts(converse: Start) -> None:
    run = converse(think_time="10")
    run.begin(StageConfig(max_concurrency=3, num_prompts=3))
    await run.until(lambda: len(run.records) == 3)
    run.command(Action.STOP)
    await run.finish()
    assert len(run.records) == 3
    assert notes(run) == ["3 conversations were cut short by the end of the load"]


async def test_the_drain_timeout_restarts_with_each_turn(converse: Start) -> None:
    for timeout in (0.15, 1.0, 6.0):  # a loaded machine may not respond within the first
        run = converse(think_time=str(2 * timeout))
        run.begin(StageConfig(num_prompts=2), drain_timeout=timeout)  # all due at once: turns come while it drains
        await run.finish()
        turns = [(each.turn, each.status) for each in sorted(run.records, key=lambda each: each.due)]
        if turns == [(turn, RequestStatus.OK) for turn in (1, 1, 2, 2, 3, 3)]:
            return
    raise AssertionError(turns)


async def test_a_turn_counts_in_the_stage_in_which_it_is_due(converse: Start) -> None:
    run = converse(think_time="100ms")
    run.begin(StageConfig(request_rate=100.0, num_prompts=1), StageConfig(request_rate=0.001, duration=0.5))
    await run.finish()
    assert [(each.turn, each.stage) for each in run.records] == [(1, 0), (2, 1), (3, 1)]


async def test_a_conversation_beyond_the_context_ends_only_with_clip_lengths(converse: Start, server: Any) -> None:
    # usage is 50 + 3 tokens for each turn
    run = converse(max_model_len=55, clip_lengths=True)
    run.begin(StageConfig(max_concurrency=1, num_prompts=2))
    await run.finish()
    assert [each.turn for each in run.records] == [1, 1]
    assert notes(run) == ["2 conversations ended early because the next turn would exceed the model's context"]
    server.served.clear()
    run = converse(max_model_len=55)
    run.begin(StageConfig(max_concurrency=1, num_prompts=2))
    await run.finish()
    assert [each.turn for each in run.records] == [1, 2, 3, 1, 2, 3]


async def test_a_pause_queues_the_next_turns_and_counts_their_wait(converse: Start) -> None:
    run = converse(think_time="400ms")
    run.begin(StageConfig(max_concurrency=2, num_prompts=3))
    await run.until(lambda: len(run.records) >= 2)
    run.command(Action.PAUSE_LOAD)
    await run.until(lambda: run.reports[-1].tick.gauges.queued == 2)
    run.command(Action.RESUME_LOAD)
    await run.finish()
    assert len(run.records) == 9
    assert run.total.client_wait.count == 2
