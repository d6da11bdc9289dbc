"""Completions in the style of the OpenAI API, rendered from templates of an engine's events.

In a template, `$id`, `$created`, `$model`, `$word` (a token's text), `$text` (the whole text), `$finish` and `$usage`
are replaced by JSON values or, within quotes, by their contents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import orjson

from servetop.simulator.dialects.metric_counters import phases_of
from servetop.simulator.server.admission import CompletionFactories
from servetop.simulator.server.completion import Completion, ResponseHeader
from servetop.simulator.server.generation_request import GenerationRequest
from servetop.simulator.server.httpd import STREAM_END, Connection, chunk

_WORD = b"$word"


def openai_json(kind: str, choice: str = "", *, usage: str = "") -> str:
    """Return the template of an OpenAI object; `choice` has the fields of its choice after `index`, if any."""
    choices = f'{{"index":0,{choice}}}' if choice else ""
    counts = f',"usage":{usage}' if usage else ""
    head = f'"id":"$id","object":"{kind}","created":$created,"model":"$model"'
    return f'{{{head},"choices":[{choices}]{counts}}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionTemplate:
    """The event templates of one engine, for text completions or chats."""

    token: str
    """The event of a token."""
    whole: str
    """The body of a complete (non-streamed) response."""
    role: str = ""
    """The event before the first token; empty for none."""
    last: str = ""
    """The event of the last token; empty if it does not differ from the others."""
    closing: str = ""
    """The event with the finish reason after the last token; empty if the last token's event contains the reason."""
    usage: str = ""
    """The event with the token counts, sent if the request includes the usage."""
    prefix: str = "data: "
    done: bool = True
    """Whether `[DONE]` ends the stream."""
    unfinished: str = "null"
    """The finish reason of all events except the last."""
    reasons: tuple[str, str] = ("length", "stop")
    """Finish reasons in streams for the token limit and for EOS."""


_NO_TEMPLATE = CompletionTemplate(token="", whole="")


class TemplateCompletion(Completion):
    """A completion that fills a template; without a template, a subclass writes the events."""

    def __init__(
        self,
        generation: GenerationRequest,
        connection: Connection,
        *,
        header: ResponseHeader,
        template: CompletionTemplate = _NO_TEMPLATE,
    ) -> None:
        super().__init__(generation, connection, header=header)
        self.template = template
        self.words: list[bytes] = []
        self._header = {
            "$id": header.response_id,
            "$created": str(header.created),
            "$model": orjson.dumps(header.model)[1:-1].decode(),
        }
        self.begin()

    def begin(self) -> None:
        """Prepare the response before the first token; a stream sends its HTTP head."""

    def values(self) -> dict[str, str]:
        """Return the current values of the placeholders, except those of the header and the words."""
        return {"$usage": orjson.dumps(self.usage()).decode()}

    def fill(self, template: str, *, finish: str) -> bytes:
        """Fill the template with the current values, except `$word`."""
        for name, value in {**self._header, **self.values(), "$finish": finish}.items():
            if name in template:
                template = template.replace(name, value)
        return template.encode()

    def next_word(self) -> bytes:
        """Return the next token's text, JSON-escaped, and count it."""
        word = self.word()
        self.words.append(word)
        self.sent += 1
        return word

    @property
    def text(self) -> bytes:
        """All text so far, JSON-escaped."""
        return b"".join(self.words)


class TemplateStream(TemplateCompletion):
    """One event per token; the constant parts are rendered once."""

    live = False
    """Whether a token's event contains values that change."""

    def begin(self) -> None:
        """Split the token's event at its text and send the HTTP head."""
        template = self.template
        self._before, _, self._after = self._event(template.token, finish=template.unfinished).partition(_WORD)
        self.connection.start_stream()

    def token(self, *, last: bool) -> None:
        """Send the token's event, with the role event before the first token and the ending after the last."""
        template, events = self.template, b""
        if not self.sent and template.role:
            events = chunk(self._event(template.role, finish=template.unfinished))
        word = self.next_word()
        if last and not template.closing:
            events += chunk(self._event(template.last or template.token, finish=self._reason).replace(_WORD, word))
        elif self.live:
            events += chunk(self._event(template.token, finish=template.unfinished).replace(_WORD, word))
        else:
            events += chunk(self._before + word + self._after)
        self.connection.send(events + self._ending() if last else events)
        if last:
            self.connection.finish()

    @property
    def _reason(self) -> str:
        length, stop = self.template.reasons
        return f'"{length if self.finish_reason == "length" else stop}"'

    def _event(self, template: str, *, finish: str) -> bytes:
        return self.template.prefix.encode() + self.fill(template, finish=finish) + b"\n\n"

    def _ending(self) -> bytes:
        template, events = self.template, b""
        if template.closing:
            events += chunk(self._event(template.closing, finish=self._reason))
        if template.usage and self.generation.include_usage:
            events += chunk(self._event(template.usage, finish=self._reason))
        return events + (chunk(b"data: [DONE]\n\n") if template.done else b"") + STREAM_END


class TemplateResponse(TemplateCompletion):
    """Collects the text and sends one object at the end."""

    def token(self, *, last: bool) -> None:
        """Collect the word; respond after the last one."""
        self.next_word()
        if last:
            body = self.fill(self.template.whole, finish=f'"{self.finish_reason}"').replace(b"$text", self.text)
            self.connection.respond(200, body, headers=self.headers())

    def headers(self) -> dict[str, object]:
        """Return the engine-specific headers of the response."""
        return {}


def phase_seconds(completion: Completion) -> dict[str, float]:
    """Return `queue`, `prefill`, `decode`, `inference`, `e2e` and `per_token` seconds up to the last token."""
    assert completion.seq is not None
    phases = phases_of(completion.seq, tokens=completion.sent)
    names = ("queue", "prefill", "decode", "inference", "e2e", "per_token")
    return {name: getattr(phases, name) for name in names}


def template_factories(template: CompletionTemplate) -> CompletionFactories:
    """Return the factories of a streamed and of a complete response that fill `template`."""
    return partial(TemplateStream, template=template), partial(TemplateResponse, template=template)
