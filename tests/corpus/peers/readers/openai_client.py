"""Reads responses with the openai package, as a program does that shows the answer; runs in the peer's environment."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import openai

from tests.corpus.peers.readings import PeerReading, ResponseJob
from tests.corpus.peers.replay import Replay, main

_TEXT_EVENTS = ("response.output_text.delta", "response.refusal.delta", "response.function_call_arguments.delta")


@dataclass(slots=True)
class _Found:
    """What the objects of the package hold."""

    texts: list[str] = field(default_factory=list)
    output_tokens: int | None = None


async def read(replay: Replay, job: ResponseJob) -> PeerReading:
    """Send the request with AsyncOpenAI; an exception of the package, or where its objects are read, is an error."""
    found = _Found()
    try:
        await _READERS[job.endpoint](_client(replay.url), found, job.stream)
        content = "".join(found.texts)
    except Exception as error:
        return PeerReading(ok=False, error=f"{type(error).__name__}: {error}")
    return PeerReading(ok=True, content=content, output_tokens=found.output_tokens)


@functools.cache
def _client(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


async def _chat(client: Any, found: _Found, stream: bool) -> None:
    messages = [{"role": "user", "content": "x"}]
    reply = await client.chat.completions.create(model="m", messages=messages, stream=stream)
    if not stream:
        _take(found, reply, [choice.message for choice in reply.choices])
        return
    async for chunk in reply:
        _take(found, chunk, [choice.delta for choice in chunk.choices])


async def _completions(client: Any, found: _Found, stream: bool) -> None:
    reply = await client.completions.create(model="m", prompt="x", stream=stream)
    if not stream:
        _take(found, reply, [])
        found.texts += [choice.text for choice in reply.choices]
        return
    async for chunk in reply:
        _take(found, chunk, [])
        for choice in chunk.choices:
            found.texts.append(choice.text or "")


async def _responses(client: Any, found: _Found, stream: bool) -> None:
    reply = await client.responses.create(model="m", input="x", stream=stream)
    if not stream:
        _raise_if_failed(reply.error)
        found.texts.append(reply.output_text)
        found.output_tokens = reply.usage and reply.usage.output_tokens
        return
    async for event in reply:
        if event.type in _TEXT_EVENTS:
            found.texts.append(event.delta)
        elif event.type in ("response.completed", "response.incomplete", "response.failed"):
            _raise_if_failed(event.response.error)
            found.output_tokens = event.response.usage.output_tokens
        elif event.type == "error":
            _raise_if_failed(event)


def _raise_if_failed(error: Any) -> None:
    if error is not None:
        raise RuntimeError(error.message)


def _take(found: _Found, chunk: Any, messages: list[Any]) -> None:
    for message in messages:
        calls = [call.function for call in message.tool_calls or ()]
        calls += [message.function_call] if message.function_call else []
        named = [part for call in calls for part in (call.name, call.arguments)]
        found.texts += [text for text in (message.content, message.refusal, *named) if text]
    if chunk.usage is not None:
        found.output_tokens = chunk.usage.completion_tokens


_READERS = {"chat": _chat, "completions": _completions, "responses": _responses}

if __name__ == "__main__":
    main(read)
