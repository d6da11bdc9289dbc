"""DeepSpeed-MII 0.3: `/generate` of its API server and the routes of its OpenAI server; no metrics at all.

Source: deepspeedai/DeepSpeed-MII, `mii/entrypoints`. The two are servers of their own there; here one port has both.
The fields of the OpenAI server are unproven.
"""

from __future__ import annotations

from typing import Any

from servetop.simulator.dialects.completion_templates import CompletionTemplate, openai_json, template_kinds
from servetop.simulator.dialects.metric_counters import MetricCounters
from servetop.simulator.dialects.server_dialect import Handler, ServerContext, ServerDialect, fastapi_error, json_route
from servetop.simulator.server.generation_request import ApiError, read_body, read_generation
from servetop.simulator.server.httpd import Connection, HttpRequest

VERSION = "0.3.3"
_DEFAULT_TOKENS = 128
_ENDS = '"finish_reason":$finish'
_SAID = '"message":{"role":"assistant","content":"$text"}'
NATIVE_TEMPLATE = CompletionTemplate(token='{"text":["$word"]}', whole='{"text":["$text"]}')
TEXT_TEMPLATE = CompletionTemplate(
    token=openai_json("text_completion", f'"text":"$word","logprobs":null,{_ENDS}'),
    whole=openai_json("text_completion", f'"text":"$text","logprobs":null,{_ENDS}', usage="$usage"),
)
CHAT_TEMPLATE = CompletionTemplate(
    role=openai_json("chat.completion.chunk", f'"delta":{{"role":"assistant"}},{_ENDS}'),
    token=openai_json("chat.completion.chunk", f'"delta":{{"content":"$word"}},{_ENDS}'),
    whole=openai_json("chat.completion", f"{_SAID},{_ENDS}", usage="$usage"),
)


class MiiServerDialect(ServerDialect):
    """MII's servers."""

    title = f"DeepSpeed-MII {VERSION}"
    profile = "fastgen-2024"

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context, MetricCounters())

    def routes(self) -> dict[tuple[str, str], Handler]:
        text, chat = template_kinds(TEXT_TEMPLATE), template_kinds(CHAT_TEMPLATE)
        return {
            ("POST", "/generate"): self._generate,
            ("POST", "/v1/completions"): self.generation_route(chat=False, kinds=text, prefix="cmpl-"),
            ("POST", "/v1/chat/completions"): self.generation_route(chat=True, kinds=chat, prefix="chatcmpl-"),
            ("GET", "/v1/models"): json_route(lambda: self.model_list("deepspeed-mii", rooted=True)),
            ("GET", "/health"): json_route(lambda: {"status": "ok"}),
        }

    def error_body(self, error: ApiError) -> bytes:
        """The OpenAI error without the object around it; of a path that does not exist, FastAPI's."""
        return fastapi_error(error)

    def _generate(self, request: HttpRequest, to: Connection) -> None:
        data: dict[str, Any] = {"max_tokens": _DEFAULT_TOKENS, **read_body(request.body)}
        generation = read_generation(data, chat=False, context_limit=self.context.spec.context_limit)
        kind = template_kinds(NATIVE_TEMPLATE)[0 if generation.stream else 1]
        self.admission.submit(generation, to, kind=kind, model=self.context.names[0], prefix="")
