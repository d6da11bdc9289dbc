"""DeepSpeed-MII 0.3: `/generate` of its API server and the routes of its OpenAI server, without metrics.

Source: deepspeedai/DeepSpeed-MII, `mii/entrypoints`. They are two servers in MII; here one port serves both. The
fields of the OpenAI server are unverified.
"""

from __future__ import annotations

from typing import Any

from servetop.simulator.dialects.completion_templates import CompletionTemplate, openai_json, template_factories
from servetop.simulator.dialects.metric_counters import MetricCounters
from servetop.simulator.dialects.server_dialect import Handler, ServerContext, ServerDialect, fastapi_error, json_route
from servetop.simulator.server.generation_request import ApiError, read_body, read_generation
from servetop.simulator.server.httpd import Connection, HttpRequest

VERSION = "0.3.3"
_DEFAULT_TOKENS = 128
_CHOICE_END = '"finish_reason":$finish'
_MESSAGE = '"message":{"role":"assistant","content":"$text"}'
NATIVE_TEMPLATE = CompletionTemplate(token='{"text":["$word"]}', whole='{"text":["$text"]}')
TEXT_TEMPLATE = CompletionTemplate(
    token=openai_json("text_completion", f'"text":"$word","logprobs":null,{_CHOICE_END}'),
    whole=openai_json("text_completion", f'"text":"$text","logprobs":null,{_CHOICE_END}', usage="$usage"),
)
CHAT_TEMPLATE = CompletionTemplate(
    role=openai_json("chat.completion.chunk", f'"delta":{{"role":"assistant"}},{_CHOICE_END}'),
    token=openai_json("chat.completion.chunk", f'"delta":{{"content":"$word"}},{_CHOICE_END}'),
    whole=openai_json("chat.completion", f"{_MESSAGE},{_CHOICE_END}", usage="$usage"),
)


class MiiServerDialect(ServerDialect):
    """MII's API server and OpenAI server."""

    title = f"DeepSpeed-MII {VERSION}"
    profile = "fastgen-2024"

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context, MetricCounters())

    def routes(self) -> dict[tuple[str, str], Handler]:
        text, chat = template_factories(TEXT_TEMPLATE), template_factories(CHAT_TEMPLATE)
        return {
            ("POST", "/generate"): self._generate,
            ("POST", "/v1/completions"): self.generation_route(chat=False, factories=text, prefix="cmpl-"),
            ("POST", "/v1/chat/completions"): self.generation_route(chat=True, factories=chat, prefix="chatcmpl-"),
            ("GET", "/v1/models"): json_route(lambda: self.model_list("deepspeed-mii", rooted=True)),
            ("GET", "/health"): json_route(lambda: {"status": "ok"}),
        }

    def error_body(self, error: ApiError) -> bytes:
        """Return the OpenAI error without the enclosing object, or FastAPI's error for an unknown path."""
        return fastapi_error(error)

    def _generate(self, request: HttpRequest, to: Connection) -> None:
        data: dict[str, Any] = {"max_tokens": _DEFAULT_TOKENS, **read_body(request.body)}
        generation = read_generation(data, chat=False, context_limit=self.context.spec.context_limit)
        factory = template_factories(NATIVE_TEMPLATE)[0 if generation.stream else 1]
        self.admission.submit(generation, to, factory=factory, model=self.context.names[0], prefix="")
