"""DeepSpeed-MII 0.3: `/generate` of its API server and the routes of its OpenAI server; no metrics at all.

Source: deepspeedai/DeepSpeed-MII, `mii/entrypoints`. The two are servers of their own there; here one port has both.
The fields of the OpenAI server are unproven.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson

from servetop.simulator.dialects.completion_templates import CompletionTemplate, ShapedStream, ShapedWhole
from servetop.simulator.dialects.metric_counters import MetricCounters
from servetop.simulator.dialects.server_dialect import Handler, ServerContext, ServerDialect, telling
from servetop.simulator.server.generation_request import ApiError, read_body, read_generation
from servetop.simulator.server.httpd import Connection, HttpRequest

VERSION = "0.3.3"
_DEFAULT_TOKENS = 128
_HEAD = '"id":"$id","object":"%s","created":$created,"model":"$model"'
_TEXT, _CHUNK = _HEAD % "text_completion", _HEAD % "chat.completion.chunk"
_DELTA = '"choices":[{"index":0,"delta":%s,"finish_reason":$finish}]'
_BEGUN, _MORE = _DELTA % '{"role":"assistant"}', _DELTA % '{"content":"$word"}'
_SAID = '"choices":[{"index":0,"message":{"role":"assistant","content":"$text"},"finish_reason":$finish}]'
NATIVE_SHAPE = CompletionTemplate(token='{"text":["$word"]}', whole='{"text":["$text"]}')
TEXT_SHAPE = CompletionTemplate(
    token=f'{{{_TEXT},"choices":[{{"index":0,"text":"$word","logprobs":null,"finish_reason":$finish}}]}}',
    whole=f'{{{_TEXT},"choices":[{{"index":0,"text":"$text","logprobs":null,"finish_reason":$finish}}],"usage":$usage}}',
)
CHAT_SHAPE = CompletionTemplate(
    role=f"{{{_CHUNK},{_BEGUN}}}",
    token=f"{{{_CHUNK},{_MORE}}}",
    whole=f'{{{_HEAD % "chat.completion"},{_SAID},"usage":$usage}}',
)


class MiiServerDialect(ServerDialect):
    """MII's servers."""

    title = f"DeepSpeed-MII {VERSION}"
    profile = "fastgen-2024"

    def __init__(self, site: ServerContext) -> None:
        super().__init__(site, MetricCounters())

    def routes(self) -> dict[tuple[str, str], Handler]:
        """See Wire."""
        text = (partial(ShapedStream, shape=TEXT_SHAPE), partial(ShapedWhole, shape=TEXT_SHAPE))
        chat = (partial(ShapedStream, shape=CHAT_SHAPE), partial(ShapedWhole, shape=CHAT_SHAPE))
        return {
            ("POST", "/generate"): self._generate,
            ("POST", "/v1/completions"): self.asking(chat=False, kinds=text, prefix="cmpl-"),
            ("POST", "/v1/chat/completions"): self.asking(chat=True, kinds=chat, prefix="chatcmpl-"),
            ("GET", "/v1/models"): telling(self._models),
            ("GET", "/health"): telling(lambda: {"status": "ok"}),
        }

    def refusal(self, error: ApiError) -> bytes:
        """The OpenAI error without the object around it; of a path that does not exist, FastAPI's."""
        if error.kind in ("NotFound", "MethodNotAllowed"):
            return orjson.dumps({"detail": str(error)})
        return orjson.dumps({"object": "error", "message": str(error), "code": error.status})

    def _generate(self, request: HttpRequest, to: Connection) -> None:
        data: dict[str, Any] = {"max_tokens": _DEFAULT_TOKENS, **read_body(request.body)}
        generation = read_generation(data, chat=False, context_limit=self.site.spec.context_limit)
        kind = partial(ShapedStream if generation.stream else ShapedWhole, shape=NATIVE_SHAPE)
        self.intake.take(generation, to, kind=kind, model=self.site.names[0], prefix="")

    def _models(self) -> dict[str, object]:
        common = {"object": "model", "created": self.born, "owned_by": "deepspeed-mii"}
        return {"object": "list", "data": [{"id": name, **common, "root": name} for name in self.site.names]}
