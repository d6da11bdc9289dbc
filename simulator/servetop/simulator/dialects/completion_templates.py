"""Answers in the OpenAI API's style as data: templates of an engine's events, filled in here.

In a template, `$id`, `$created`, `$model`, `$word` (a token's text), `$text` (all of it), `$finish` and `$usage` stand
for JSON values or, within quotes, for what they contain.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from servetop.simulator.dialects.metric_counters import phases_of
from servetop.simulator.dialects.vllm_completions import ResponseHeader, VllmCompletion
from servetop.simulator.server.generation_request import GenerationRequest
from servetop.simulator.server.httpd import STREAM_END, Connection, chunk

_WORD = b"$word"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionTemplate:
    """One engine's events for text completions, or for chats."""

    token: str
    """The event of a token."""
    whole: str
    """The body of an answer in one piece."""
    role: str = ""
    """The event before the first token, if there is one."""
    last: str = ""
    """The event of the last token, where it is not as the others."""
    closing: str = ""
    """An event without a token that tells the finish reason, where the last token's does not."""
    usage: str = ""
    """The event with the counts, sent to those who ask for it."""
    prefix: str = "data: "
    done: bool = True
    """Whether `[DONE]` ends the stream."""
    unfinished: str = "null"
    """The finish reason of all events but the last."""
    reasons: tuple[str, str] = ("length", "stop")
    """In streams, the words for an answer that its limit ended, and that the model ended."""


class ShapedAnswer(VllmCompletion):
    """An answer that fills templates."""

    def __init__(self, generation: GenerationRequest, connection: Connection, *, heading: ResponseHeader) -> None:
        super().__init__(generation, connection, heading=heading)
        self.words: list[bytes] = []
        self._heading = {
            "$id": heading.identity,
            "$created": str(heading.created),
            "$model": orjson.dumps(heading.model)[1:-1].decode(),
        }

    def values(self) -> dict[str, str]:
        """What the placeholders stand for as of now, besides the heading's and the words."""
        return {"$usage": orjson.dumps(self.usage()).decode()}

    def fill(self, template: str, *, finish: str) -> bytes:
        """The template as of now; `$word` is left in it."""
        for name, value in {**self._heading, **self.values(), "$finish": finish}.items():
            if name in template:
                template = template.replace(name, value)
        return template.encode()

    def next_word(self) -> bytes:
        """The next token's text, JSON-escaped, counted and kept."""
        word = self.word()
        self.words.append(word)
        self.sent += 1
        return word

    @property
    def text(self) -> bytes:
        """All text so far, JSON-escaped."""
        return b"".join(self.words)


class ShapedStream(ShapedAnswer):
    """One event per token. What is the same in all of them is made once, unless it changes from token to token."""

    live = False
    """Whether a token's event contains values that change."""

    def __init__(
        self,
        generation: GenerationRequest,
        connection: Connection,
        *,
        heading: ResponseHeader,
        shape: CompletionTemplate,
    ) -> None:
        super().__init__(generation, connection, heading=heading)
        self._shape = shape
        self._before, _, self._after = self._event(shape.token, finish=shape.unfinished).partition(_WORD)
        connection.start_stream()

    def token(self, *, last: bool) -> None:
        """Send the token's event, and what the engine sends before the first and after the last one."""
        shape, events = self._shape, b""
        if not self.sent and shape.role:
            events = chunk(self._event(shape.role, finish=shape.unfinished))
        word = self.next_word()
        if last and not shape.closing:
            events += chunk(self._event(shape.last or shape.token, finish=self._reason).replace(_WORD, word))
        elif self.live:
            events += chunk(self._event(shape.token, finish=shape.unfinished).replace(_WORD, word))
        else:
            events += chunk(self._before + word + self._after)
        self.connection.send(events + self._ending() if last else events)
        if last:
            self.connection.finish()

    @property
    def _reason(self) -> str:
        length, stop = self._shape.reasons
        return f'"{length if self.finish_reason == "length" else stop}"'

    def _event(self, template: str, *, finish: str) -> bytes:
        return self._shape.prefix.encode() + self.fill(template, finish=finish) + b"\n\n"

    def _ending(self) -> bytes:
        shape, events = self._shape, b""
        if shape.closing:
            events += chunk(self._event(shape.closing, finish=self._reason))
        if shape.usage and self.generation.include_usage:
            events += chunk(self._event(shape.usage, finish=self._reason))
        return events + (chunk(b"data: [DONE]\n\n") if shape.done else b"") + STREAM_END


class ShapedWhole(ShapedAnswer):
    """Collects the text and sends one object at the end."""

    def __init__(
        self,
        generation: GenerationRequest,
        connection: Connection,
        *,
        heading: ResponseHeader,
        shape: CompletionTemplate,
    ) -> None:
        super().__init__(generation, connection, heading=heading)
        self._shape = shape

    def token(self, *, last: bool) -> None:
        """Keep the word; answer with the last one."""
        self.next_word()
        if last:
            body = self.fill(self._shape.whole, finish=f'"{self.finish_reason}"').replace(b"$text", self.text)
            self.connection.respond(200, body, headers=self.headers())

    def headers(self) -> dict[str, object]:
        """Headers of the answer that only this engine sends."""
        return {}


def seconds_of(answer: VllmCompletion) -> dict[str, float]:
    """`queue`, `prefill`, `decode`, `inference`, `e2e` and `per_token` seconds of an answer up to its last token."""
    assert answer.seq is not None
    phases = phases_of(answer.seq, tokens=answer.sent)
    names = ("queue", "prefill", "decode", "inference", "e2e", "per_token")
    return {name: getattr(phases, name) for name in names}
