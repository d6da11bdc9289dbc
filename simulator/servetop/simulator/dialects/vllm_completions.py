"""Writes answers in vLLM's shapes: server-sent events with one token each, or one JSON object."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import orjson

from servetop.simulator.scheduling.sim_request import SimSequence
from servetop.simulator.server.choices import Choices
from servetop.simulator.server.generation_request import GenerationRequest
from servetop.simulator.server.httpd import STREAM_END, Connection
from servetop.simulator.server.tokens import WORDS

_ESCAPED_WORDS = tuple(orjson.dumps(f" {word}")[1:-1] for word in WORDS)
_FINGERPRINT = "servetop-sim"
# How vLLM 0.32 ends the one choice of an event, and of an answer's last event.
_CHAT_ENDS = (
    b'"},"logprobs":null,"finish_reason":null,"token_ids":null}]',
    b'"},"logprobs":null,"finish_reason":"%b","stop_reason":null,"token_ids":null}]',
)
_TEXT_ENDS = (
    b'","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]',
    b'","logprobs":null,"finish_reason":"%b","stop_reason":null,"prompt_token_ids":null,"token_ids":null}]',
)


@dataclass(frozen=True, slots=True)
class ResponseHeader:
    """What every event of an answer repeats. `created` is a Unix time in whole seconds."""

    identity: str
    model: str
    created: int
    index: int = 0
    """Of the choice."""
    prompt: int = 0
    """Number of the prompt that is answered."""
    choices: Choices | None = None
    """Where a request wants several answers: all of them."""


class VllmCompletion:
    """One answer in the making. `seq` is set once the engine has taken the request."""

    def __init__(self, generation: GenerationRequest, connection: Connection, *, heading: ResponseHeader) -> None:
        self.generation = generation
        self.connection = connection
        self.heading = heading
        self.seq: SimSequence | None = None
        self.sent = 0
        self._offset = zlib.crc32(heading.identity.encode()) + heading.index
        if heading.choices is not None:
            heading.choices.members.append(self)

    @property
    def prompt(self) -> int:
        """Number of its prompt in the request."""
        return self.heading.prompt

    def all_usage(self) -> dict[str, object]:
        """Of the whole request."""
        return self.usage() if self.heading.choices is None else self.heading.choices.usage()

    @property
    def finish_reason(self) -> str:
        """`length` when the limit ended the answer, else `stop` (the model said EOS)."""
        return "length" if self.sent >= self.generation.max_tokens else "stop"

    def usage(self) -> dict[str, object]:
        """Token counts so far; with a prefix cache also how many prompt tokens came out of it."""
        prompt = self.generation.prompt_tokens
        usage: dict[str, object] = {
            "prompt_tokens": prompt,
            "total_tokens": prompt + self.sent,
            "completion_tokens": self.sent,
        }
        if self.seq is not None and self.seq.request.prefix:
            usage["prompt_tokens_details"] = {"cached_tokens": self.seq.cached_tokens}
        return usage

    def token(self, *, last: bool) -> None:
        """One more token; `last` with the final one. Every kind of answer writes it in its own way."""
        raise NotImplementedError

    def word(self) -> bytes:
        """The next token's text, JSON-escaped."""
        return _ESCAPED_WORDS[(self._offset + self.sent * 7) % len(_ESCAPED_WORDS)]


class WholeAnswer(VllmCompletion):
    """Collects the text and sends one object at the end."""

    def __init__(self, generation: GenerationRequest, connection: Connection, *, heading: ResponseHeader) -> None:
        super().__init__(generation, connection, heading=heading)
        self._text: list[bytes] = []

    def token(self, *, last: bool) -> None:
        """Keep the word; answer with the last one."""
        self._text.append(self.word())
        self.sent += 1
        if not last:
            return
        body, choices = self.whole(orjson.loads(b'"' + b"".join(self._text) + b'"')), self.heading.choices
        if choices is not None:
            if not choices.end(self.heading.index, body["choices"][0]):
                return
            body |= {"choices": choices.choices, "usage": choices.usage()}
        self.connection.respond(200, orjson.dumps(body))

    def whole(self, text: str) -> dict[str, Any]:
        """The body of the answer."""
        choice: dict[str, object] = {"index": self.heading.index}
        if self.generation.chat:
            choice["message"] = {"role": "assistant", "content": text, "refusal": None, "tool_calls": []}
        else:
            choice["text"] = text
        choice |= {"logprobs": None, "finish_reason": self.finish_reason, "stop_reason": None}
        return {
            "id": self.heading.identity,
            "object": "chat.completion" if self.generation.chat else "text_completion",
            "created": self.heading.created,
            "model": self.heading.model,
            "choices": [choice],
            "system_fingerprint": _FINGERPRINT,
            "usage": self.usage(),
        }


class StreamedAnswer(VllmCompletion):
    """One event per token; all that is the same in every event is made once."""

    def __init__(self, generation: GenerationRequest, connection: Connection, *, heading: ResponseHeader) -> None:
        super().__init__(generation, connection, heading=heading)
        kind = "chat.completion.chunk" if generation.chat else "text_completion"
        head = {"id": heading.identity, "object": kind, "created": heading.created, "model": heading.model}
        self._head = b"data: " + orjson.dumps(head)[:-1]
        opening = b'"delta":{"content":"' if generation.chat else b'"text":"'
        self._before = self._head + b',"choices":[{"index":%d,' % heading.index + opening
        self._after, self._last = _CHAT_ENDS if generation.chat else _TEXT_ENDS
        self._usage = generation.continuous_usage
        if not heading.index:
            connection.start_stream()

    def token(self, *, last: bool) -> None:
        """Send the token's event; after the last one the usage, if asked for, and `[DONE]`."""
        events = b""
        if not self.sent and self.generation.chat:
            events = self._role_event()
        word = self.word()
        self.sent += 1
        after = self._last % self.finish_reason.encode() if last else self._after
        tail = self._usage_tail() if self._usage else b"}\n\n"
        event = self._before + word + after + tail
        events += b"%x\r\n%b\r\n" % (len(event), event)
        choices = self.heading.choices
        over = last and (choices is None or choices.end(self.heading.index, {}))
        if over:
            events += self._ending()
        self.connection.send(events)
        if over:
            self.connection.finish()

    def _usage_tail(self) -> bytes:
        return b',"usage":' + orjson.dumps(self.usage()) + b"}\n\n"

    def _role_event(self) -> bytes:
        choice = (
            b',"choices":[{"index":%d,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]'
            % self.heading.index
        )
        event = self._head + choice + (self._usage_tail() if self._usage else b"}\n\n")
        return b"%x\r\n%b\r\n" % (len(event), event)

    def _ending(self) -> bytes:
        events = b""
        if self.generation.include_usage:
            event = self._head + b',"choices":[],"usage":' + orjson.dumps(self.all_usage()) + b"}\n\n"
            events = b"%x\r\n%b\r\n" % (len(event), event)
        return events + b"e\r\ndata: [DONE]\n\n\r\n" + STREAM_END
