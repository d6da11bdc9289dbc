"""`transformers serve --continuous-batching` 5.19: OpenAI routes with strict fields, without metrics and `[DONE]`.

As captured: every stream ends with its token counts, requested or not, and the model list fails with status 500.
"""

from __future__ import annotations

from functools import partial

import orjson

from servetop.simulator.dialects.completion_templates import CompletionTemplate, template_factories
from servetop.simulator.dialects.metric_counters import MetricCounters
from servetop.simulator.dialects.server_dialect import Handler, ServerContext, ServerDialect, json_route
from servetop.simulator.server.admission import CompletionFactories
from servetop.simulator.server.generation_request import ApiError, read_body
from servetop.simulator.server.httpd import Connection, HttpRequest

VERSION = "5.19.0"
_PRINT = ',"system_fingerprint":""'
_COUNTS = ',"usage":$usage'
_MESSAGE = '{"content":"$text","role":"assistant"}'


def _event(kind: str, choice: str, more: str = "") -> str:
    """Return an object with one choice, its fields in the server's order; `more` are the fields after `object`."""
    head = f'"created":$created,"model":"$model@main","object":"{kind}"'
    return f'{{"id":"$id","choices":[{{{choice}}}],{head}{more}}}'


TEXT_TEMPLATE = CompletionTemplate(
    token=_event("text_completion", '"index":0,"text":"$word"'),
    closing=_event("text_completion", '"finish_reason":$finish,"index":0,"text":""', _COUNTS),
    whole=_event("text_completion", '"finish_reason":$finish,"index":0,"text":"$text"', _COUNTS),
    done=False,
)
CHAT_TEMPLATE = CompletionTemplate(
    role=_event("chat.completion.chunk", '"delta":{"role":"assistant"},"index":0', _PRINT),
    token=_event("chat.completion.chunk", '"delta":{"content":"$word"},"index":0', _PRINT),
    closing=_event("chat.completion.chunk", '"delta":{},"finish_reason":$finish,"index":0', _PRINT + _COUNTS),
    whole=_event("chat.completion", f'"finish_reason":$finish,"index":0,"message":{_MESSAGE}', _COUNTS),
    done=False,
)
_COMMON = {
    *("model", "max_tokens", "stream", "stream_options", "seed", "stop", "temperature", "top_p", "n", "logprobs"),
    *("frequency_penalty", "presence_penalty", "logit_bias", "user", "generation_config"),
}
FIELDS = {
    False: _COMMON | {"prompt", "best_of", "echo", "suffix"},
    True: _COMMON | {"messages", "max_completion_tokens", "tools", "tool_choice", "response_format", "top_logprobs"},
}
"""The fields allowed in a text completion (False) and in a chat (True)."""


class TransformersServerDialect(ServerDialect):
    """The server `transformers serve`."""

    title = f"transformers {VERSION}"
    profile = "transformers-current"

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context, MetricCounters())

    def routes(self) -> dict[tuple[str, str], Handler]:
        text, chat = template_factories(TEXT_TEMPLATE), template_factories(CHAT_TEMPLATE)
        return {
            ("POST", "/v1/completions"): partial(self._complete, chat=False, factories=text),
            ("POST", "/v1/chat/completions"): partial(self._complete, chat=True, factories=chat),
            ("GET", "/v1/models"): lambda _, to: to.respond(500, b"Internal Server Error", content_type=b"text/plain"),
            ("GET", "/health"): json_route(lambda: {"status": "ok"}),
        }

    def error_body(self, error: ApiError) -> bytes:
        """Return FastAPI's `{"detail": "…"}`."""
        return orjson.dumps({"detail": str(error)})

    def _complete(self, request: HttpRequest, to: Connection, *, chat: bool, factories: CompletionFactories) -> None:
        data = read_body(request.body)
        unknown = [field for field in data if field not in FIELDS[chat]]
        if unknown:
            listed = ", ".join(f"'{field}'" for field in unknown)
            raise ApiError(f"Unexpected fields in the request: {{{listed}}}", status=422)
        self.generate({**data, "model": None}, to, chat=chat, factories=factories, prefix="")
