"""Requests for several completions of a prompt, and servers that send fewer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus

NOTE = (
    "the server sends 1 completion of each prompt, 2 were requested (n = 2): "
    "tokens and rates are those of what it sends"
)


def events(choices: int) -> list[dict[str, Any]]:
    """Return the events of a stream with two tokens for each of the completions."""
    texts = [{"choices": [{"index": each, "text": " a"}]} for each in range(choices) for _ in range(2)]
    ends = [{"choices": [{"index": each, "text": "", "finish_reason": "stop"}]} for each in range(choices)]
    return [*texts, *ends, {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2 * choices}}]


def whole(choices: int) -> bytes:
    found = [{"index": each, "text": " a a", "finish_reason": "stop"} for each in range(choices)]
    return json.dumps({"choices": found, "usage": {"prompt_tokens": 5, "completion_tokens": 2 * choices}}).encode()


@pytest.mark.parametrize("asked", [{"n": 2}, {"extra_body": {"n": 2}}], ids=["--n", "--extra-body"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("sent", "notes"), [(1, [NOTE]), (2, [])])
async def test_a_server_that_sends_fewer_completions_than_requested_is_named_once(
    server: Any, start: Any, sse_head: bytes, asked: dict[str, Any], stream: bool, sent: int, notes: list[str]
) -> None:
    async def answers(request: Any) -> None:
        assert request.content["n"] == 2
        if not stream:
            await request.status("200 OK", whole(sent))
            return
        await request.raw(sse_head)
        for each in events(sent):
            await request.event(each)
        await request.end()

    server.script = answers
    run = start(server.url, stream=stream, **asked)
    run.begin(StageConfig(max_concurrency=1, num_prompts=3))
    await run.finish()
    assert [(each.status, each.output_tokens) for each in run.records] == [(RequestStatus.OK, 2 * sent)] * 3
    assert [note.text for report in run.reports for note in report.notes] == notes
