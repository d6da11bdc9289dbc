"""Completions of Text Generation Inference 3.3: its native API and the OpenAI API.

Formats: huggingface/text-generation-inference, `router/src/server.rs` and `router/src/lib.rs`.
"""

from __future__ import annotations

from typing import Any

import orjson

from servetop.simulator.dialects.completion_templates import (
    CompletionTemplate,
    TemplateCompletion,
    TemplateResponse,
    TemplateStream,
    phase_seconds,
)
from servetop.simulator.server.httpd import STREAM_END, chunk
from servetop.simulator.server.tokens import token_ids

VERSION = "3.3.6-dev0"
_FINGERPRINT = f'"system_fingerprint":"{VERSION}-native"'
_HEAD = f'"id":"","created":$created,"model":"$model",{_FINGERPRINT}'
_CHOICE = '"choices":[{"index":0,"text":"%s","logprobs":null,"finish_reason":$finish}]'
_DELTA = (
    '"choices":[{"index":0,"delta":{"role":"assistant","content":"$word"},"logprobs":null,"finish_reason":$finish}]'
)
_MESSAGE = (
    '"choices":[{"index":0,"message":{"role":"assistant","content":"$text"},"logprobs":null,"finish_reason":$finish}]'
)
TEXT_TEMPLATE = CompletionTemplate(
    token=f'{{"object":"text_completion",{_HEAD},{_CHOICE % "$word"}}}',
    last=f'{{"object":"text_completion",{_HEAD},{_CHOICE % "$word"},"usage":$usage}}',
    whole=f'{{"object":"text_completion",{_HEAD},{_CHOICE % "$text"},"usage":$usage}}',
    prefix="data:",
    unfinished='""',
    reasons=("length", "eos_token"),
)
CHAT_TEMPLATE = CompletionTemplate(
    token=f'{{"object":"chat.completion.chunk",{_HEAD},{_DELTA},"usage":null}}',
    last=f'{{"object":"chat.completion.chunk",{_HEAD},{_DELTA},"usage":$optional_usage}}',
    whole=f'{{"object":"chat.completion",{_HEAD},{_MESSAGE},"usage":$usage}}',
    prefix="data:",
)


class _NativeCompletion(TemplateCompletion):
    """A completion of TGI's native API."""

    details = False

    def native_finish_reason(self) -> str:
        """Return TGI's finish reason, `length` or `eos_token`."""
        return "length" if self.finish_reason == "length" else "eos_token"

    def token_json(self, word: bytes) -> bytes:
        """Return the JSON of one token; its id is derived from its text."""
        return b'{"id":%d,"text":"%b","logprob":-0.5,"special":false}' % (token_ids(word.decode())[0], word)


class TgiNativeStream(_NativeCompletion):
    """A `/generate_stream`; the last event contains the whole text and, with `details`, the counts. No `[DONE]`."""

    def __init__(self, *args: Any, details: bool, **header: Any) -> None:
        super().__init__(*args, **header)
        self.details = details
        self.connection.start_stream()

    def token(self, *, last: bool) -> None:
        """Send the token's event."""
        token = self.token_json(self.next_word())
        text, details = (b'"%b"' % self.text if last else b"null"), b"null"
        if last and self.details:
            counts = {
                "finish_reason": self.native_finish_reason(),
                "generated_tokens": self.sent,
                "seed": self.generation.seed,
            }
            details = orjson.dumps({**counts, "input_length": self.generation.prompt_tokens})
        event = b'data:{"index":%d,"token":%b,"generated_text":%b,"details":%b}\n\n' % (self.sent, token, text, details)
        self.connection.send(chunk(event) + STREAM_END if last else chunk(event))
        if last:
            self.connection.finish()


def _headers(completion: TemplateCompletion) -> dict[str, object]:
    """Return TGI's headers of a complete (non-streamed) response; times in whole milliseconds."""
    seconds = phase_seconds(completion)
    return {
        "x-compute-type": "1-simulated",
        "x-compute-time": seconds["e2e"],
        "x-total-time": int(seconds["e2e"] * 1e3),
        "x-validation-time": 0,
        "x-queue-time": int(seconds["queue"] * 1e3),
        "x-inference-time": int(seconds["inference"] * 1e3),
        "x-time-per-token": int(seconds["inference"] / completion.sent * 1e3),
        "x-prompt-tokens": completion.generation.prompt_tokens,
        "x-generated-tokens": completion.sent,
    }


class TgiNativeResponse(_NativeCompletion):
    """A response of `/generate`; `listed` wraps it in a list, as the route `/` does."""

    def __init__(self, *args: Any, details: bool, listed: bool, **header: Any) -> None:
        super().__init__(*args, **header)
        self.details = details
        self.listed = listed

    def token(self, *, last: bool) -> None:
        """Collect the word; respond after the last one."""
        self.next_word()
        if last:
            tokens = [orjson.loads(self.token_json(word)) for word in self.words]
            counts = {
                "finish_reason": self.native_finish_reason(),
                "generated_tokens": self.sent,
                "seed": self.generation.seed,
            }
            details = {**counts, "prefill": [], "tokens": tokens} if self.details else None
            body = {"generated_text": orjson.loads(b'"' + self.text + b'"'), "details": details}
            self.connection.respond(200, orjson.dumps([body] if self.listed else body), headers=_headers(self))


class TgiStream(TemplateStream):
    """One event per token; the last event of a text completion contains the usage, that of a chat only on request."""

    def values(self) -> dict[str, str]:
        """Add `$optional_usage`: the usage of a chat if the request includes it, else null."""
        values = super().values()
        return {**values, "$optional_usage": values["$usage"] if self.generation.include_usage else "null"}


class TgiResponse(TemplateResponse):
    """One JSON object, with TGI's headers."""

    def headers(self) -> dict[str, object]:
        return _headers(self)
