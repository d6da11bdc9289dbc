"""Completions of llama.cpp's llama-server: its native API and the OpenAI API, captured from build b1-0c1e570."""

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
from servetop.simulator.server.generation_request import GenerationRequest
from servetop.simulator.server.httpd import STREAM_END, chunk
from servetop.simulator.server.tokens import token_ids

BUILD = "b1-0c1e570"
_HEAD = f'"created":$created,"model":"$model","system_fingerprint":"{BUILD}","object":"%s"'
_TEXT, _CHUNK, _CHAT = (_HEAD % kind for kind in ("text_completion", "chat.completion.chunk", "chat.completion"))
_CHOICE = '"choices":[{"text":"%s","index":0,"logprobs":null,"finish_reason":$finish}]'
_DELTA = '"choices":[{"finish_reason":$finish,"index":0,"delta":%s}]'
_MESSAGE = '"choices":[{"finish_reason":$finish,"index":0,"message":{"role":"assistant","content":"$text"}}]'
TEXT_TEMPLATE = CompletionTemplate(
    token=f'{{{_CHOICE % "$word"},{_TEXT},"id":"$id","timings":$timings}}',
    closing=f'{{{_CHOICE % ""},{_TEXT},"usage":$usage,"id":"$id","timings":$timings}}',
    whole=f'{{{_CHOICE % "$text"},{_TEXT},"usage":$usage,"id":"$id","timings":$timings}}',
)
CHAT_TEMPLATE = CompletionTemplate(
    role=f'{{{_DELTA % """{"role":"assistant","content":null}"""},"id":"$id",{_CHUNK}}}',
    token=f'{{{_DELTA % """{"content":"$word"}"""},"id":"$id",{_CHUNK}}}',
    closing=f'{{{_DELTA % "{}"},"id":"$id",{_CHUNK}$closing_timings}}',
    usage=f'{{"choices":[],"id":"$id",{_CHUNK},"usage":$usage,"timings":$timings}}',
    whole=f'{{{_MESSAGE},{_CHAT},"usage":$usage,"id":"$id","timings":$timings}}',
)
_SAMPLERS = ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"]
_ZERO_FLOATS = ("dynatemp_range", "xtc_probability", "presence_penalty", "frequency_penalty", "dry_multiplier")
_ZERO_INTS = ("mirostat", "n_keep", "n_discard", "n_probs", "min_keep")
_FALSE = (
    "ignore_eos",
    "stream",
    "timings_per_token",
    "post_sampling_probs",
    "backend_sampling",
    "reasoning_in_content",
)
PARAMS: dict[str, Any] = {
    **dict.fromkeys(_ZERO_FLOATS, 0.0),
    **dict.fromkeys(_ZERO_INTS, 0),
    **dict.fromkeys(_FALSE, False),
    "seed": 4294967295,
    "temperature": 0.8,
    "dynatemp_exponent": 1.0,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.05,
    "top_n_sigma": -1.0,
    "xtc_threshold": 0.1,
    "typical_p": 1.0,
    "repeat_last_n": 64,
    "repeat_penalty": 1.0,
    "dry_base": 1.75,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": 64,
    "mirostat_tau": 5.0,
    "mirostat_eta": 0.1,
    "adaptive_target": -1.0,
    "adaptive_decay": 0.9,
    "max_tokens": -1,
    "n_predict": -1,
    "samplers": _SAMPLERS,
    "chat_format": "Content-only",
    "reasoning_format": "none",
    "generation_prompt": "",
    "lora": [],
    "speculative.types": "none",
}
"""The default generation settings in `/props`."""


def params_of(generation: GenerationRequest) -> dict[str, Any]:
    """Return the generation settings of one request, as in `/slots`."""
    limits = {"max_tokens": generation.max_tokens, "n_predict": generation.max_tokens, "stream": generation.stream}
    return {**PARAMS, **limits, "ignore_eos": generation.ignore_eos, "reasoning_format": "deepseek"}


def timings_of(completion: TemplateCompletion) -> dict[str, Any]:
    """Return milliseconds and rates of prompt and generation so far; the first token is part of the prompt's time."""
    seconds = phase_seconds(completion)
    assert completion.seq is not None
    cached, prompt = completion.seq.cached_tokens, completion.generation.prompt_tokens - completion.seq.cached_tokens
    times = {"prompt": (prompt, seconds["prefill"]), "predicted": (completion.sent, seconds["decode"])}
    timings: dict[str, Any] = {"cache_n": cached}
    for name, (tokens, duration) in times.items():
        timings |= {
            f"{name}_n": tokens,
            f"{name}_ms": duration * 1e3,
            f"{name}_per_token_ms": duration * 1e3 / tokens if tokens else 0.0,
            f"{name}_per_second": tokens / duration if duration else 0.0,
        }
    return timings


class _Timed(TemplateCompletion):
    def values(self) -> dict[str, str]:
        """Add `$timings`; a chat sends them in the usage event if the request includes it, else in the closing one."""
        if self.seq is None:
            return {"$closing_timings": "", "$timings": "null"}
        usage = {**self.usage(), "prompt_tokens_details": {"cached_tokens": self.seq.cached_tokens}}
        timings = orjson.dumps(timings_of(self)).decode()
        closing = "" if self.generation.include_usage else f',"timings":{timings}'
        return {"$closing_timings": closing, "$timings": timings, "$usage": orjson.dumps(usage).decode()}


class LlamaCppStream(_Timed, TemplateStream):
    """One event per token; the events of a text completion contain the timings so far."""

    def begin(self) -> None:
        """Mark templates with timings as changing from token to token."""
        self.live = "$timings" in self.template.token
        super().begin()


class LlamaCppResponse(_Timed, TemplateResponse):
    """One JSON object with the timings."""


class _Native(TemplateCompletion):
    """A completion of the native route `/completion`."""

    def final(self, *, content: str) -> bytes:
        """Return the last object of a stream, or the complete response."""
        assert self.seq is not None
        generation = self.generation
        body = {
            "index": 0,
            "content": content,
            "tokens": [],
            "id_slot": self.seq.index,
            "stop": True,
            "model": self.header.model,
            "tokens_predicted": self.sent,
            "tokens_evaluated": generation.prompt_tokens,
            "generation_settings": params_of(generation),
            "prompt": generation.prompt,
            "has_new_line": False,
            "truncated": False,
            "stop_type": "limit" if self.finish_reason == "length" else "eos",
            "stopping_word": "",
            "tokens_cached": generation.prompt_tokens + self.sent - 1,
            "timings": timings_of(self),
        }
        return orjson.dumps(body)


class LlamaCppNativeStream(_Native):
    """One event per token, then one with the timings, without `[DONE]`."""

    def begin(self) -> None:
        """Send the HTTP head."""
        self.connection.start_stream()

    def token(self, *, last: bool) -> None:
        """Send the token's event, and the final event after the last token."""
        word = self.next_word()
        event = (
            b'data: {"index":0,"content":"%b","tokens":[%d],"stop":false,"id_slot":-1,"tokens_predicted":%d,'
            b'"tokens_evaluated":%d}\n\n'
            % (word, token_ids(word.decode())[0], self.sent, self.generation.prompt_tokens)
        )
        events = chunk(event)
        if last:
            events += chunk(b"data: " + self.final(content="") + b"\n\n") + STREAM_END
        self.connection.send(events)
        if last:
            self.connection.finish()


class LlamaCppNativeResponse(_Native):
    """One JSON object at the end."""

    def token(self, *, last: bool) -> None:
        """Collect the word; respond after the last one."""
        self.next_word()
        if last:
            self.connection.respond(200, self.final(content=orjson.loads(b'"' + self.text + b'"')))
