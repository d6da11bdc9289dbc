"""Text Generation Inference 3.3: `/generate`, `/generate_stream`, its OpenAI routes, and its errors.

Source: huggingface/text-generation-inference, `router/src/server.rs`. Its native streams send errors as events, with
status 200.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson

from servetop.simulator.dialects.server_dialect import TEXT, Handler, ServerContext, ServerDialect, json_route
from servetop.simulator.dialects.tgi_completions import (
    CHAT_TEMPLATE,
    TEXT_TEMPLATE,
    VERSION,
    TgiNativeResponse,
    TgiNativeStream,
    TgiResponse,
    TgiStream,
)
from servetop.simulator.dialects.tgi_metrics import TgiCounters
from servetop.simulator.server.admission import CompletionFactory
from servetop.simulator.server.generation_request import ApiError, read_body, read_generation
from servetop.simulator.server.httpd import STREAM_END, Connection, HttpRequest, chunk
from servetop.simulator.server.tokens import count_tokens, token_ids


class TgiServerDialect(ServerDialect):
    """The router of Text Generation Inference."""

    title = f"TGI {VERSION}"
    profile = "tgi-2024"
    counters: TgiCounters

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context, TgiCounters())

    def routes(self) -> dict[tuple[str, str], Handler]:
        health = json_route(lambda: b"", content_type=b"text/plain")
        return {
            ("POST", "/generate"): lambda request, to: self._generate(read_body(request.body), to, stream=False),
            ("POST", "/generate_stream"): lambda request, to: self._generate(read_body(request.body), to, stream=True),
            ("POST", "/"): self._compatible,
            ("POST", "/v1/completions"): partial(self._openai, chat=False),
            ("POST", "/v1/chat/completions"): partial(self._openai, chat=True),
            ("GET", "/v1/models"): json_route(self._models),
            ("GET", "/info"): json_route(self._info),
            ("GET", "/health"): health,
            ("GET", "/ping"): health,
            ("GET", "/metrics"): json_route(self.page, content_type=TEXT),
            ("POST", "/tokenize"): self._tokenize,
        }

    def error_body(self, error: ApiError) -> bytes:
        """Return `{"error", "error_type"}`."""
        return orjson.dumps({"error": str(error), "error_type": error.error_type})

    def unknown(self, request: HttpRequest) -> ApiError:
        """Return the 404 or 405 with TGI's error type."""
        error = super().unknown(request)
        return ApiError(str(error), status=error.status, error_type="not_found")

    def _generate(self, data: dict[str, Any], to: Connection, *, stream: bool, listed: bool = False) -> None:
        parameters = data.get("parameters") or {}
        if not isinstance(data.get("inputs"), str) or not isinstance(parameters, dict):
            text = "Failed to deserialize the JSON body into the target type: inputs: expected a string"
            to.respond(422, text.encode(), content_type=b"text/plain; charset=utf-8")
            return
        details = bool(parameters.get("details"))
        body = {
            "prompt": data["inputs"],
            "seed": parameters.get("seed"),
            "max_tokens": parameters.get("max_new_tokens"),
        }
        if body["max_tokens"] is None:
            body["max_tokens"] = max(self.context.spec.context_limit - count_tokens(data["inputs"]), 1)
        try:
            whole = partial(TgiNativeResponse, details=details, listed=listed)
            factory = partial(TgiNativeStream, details=details) if stream else whole
            self._take(body, to, chat=False, factory=factory)
        except ApiError as error:
            if not stream:
                raise
            event = chunk(b"data:" + self.error_body(error) + b"\n\n")
            to.start_stream()
            to.send(event + STREAM_END)
            to.finish()

    def _compatible(self, request: HttpRequest, to: Connection) -> None:
        data = read_body(request.body)
        self._generate(data, to, stream=bool(data.get("stream")), listed=True)

    def _openai(self, request: HttpRequest, to: Connection, *, chat: bool) -> None:
        data = {**read_body(request.body), "ignore_eos": False, "min_tokens": None}  # TGI ignores these
        template = CHAT_TEMPLATE if chat else TEXT_TEMPLATE
        factory = partial(TgiStream if data.get("stream") else TgiResponse, template=template)
        self._take(data, to, chat=chat, factory=factory)

    def _take(self, data: dict[str, Any], to: Connection, *, chat: bool, factory: CompletionFactory) -> None:
        self.counters.requests += 1
        try:
            self._check_load()
            generation = read_generation(data, chat=chat, context_limit=self.context.spec.context_limit)
            self.admission.submit(generation, to, factory=factory, model=self.context.names[0], prefix="")
        except ApiError as error:
            error_type = "overloaded" if error.status == 429 else "validation"
            self.counters.refused(error_type)
            text = str(error) if error.status == 429 else f"Input validation error: {error}"
            raise ApiError(text, status=429 if error.status == 429 else 422, error_type=error_type) from None
        sizes = (generation.prompt_tokens, generation.max_tokens, 0.0)
        for histogram, value in zip(self.counters.accepted.values(), sizes, strict=True):
            histogram.observe(value)

    def _check_load(self) -> None:
        if self.engine.scheduler.unfinished >= self.context.options.max_concurrent_requests:
            raise ApiError("Model is overloaded", status=429)

    def _tokenize(self, request: HttpRequest, to: Connection) -> None:
        text = str(read_body(request.body).get("inputs", ""))
        tokens = [
            {"id": token, "text": text[4 * at : 4 * at + 4], "start": 4 * at, "stop": min(4 * at + 4, len(text))}
            for at, token in enumerate(token_ids(text))
        ]
        to.respond(200, orjson.dumps(tokens))

    def _models(self) -> dict[str, object]:
        name = self.context.names[0]
        return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": name}]}

    def _info(self) -> dict[str, object]:
        limit = self.context.spec.context_limit
        return {
            "model_id": self.context.names[0],
            "model_sha": None,
            "model_pipeline_tag": "text-generation",
            "max_concurrent_requests": self.context.options.max_concurrent_requests,
            "max_best_of": 2,
            "max_stop_sequences": 4,
            "max_input_tokens": limit - 1,
            "max_total_tokens": limit,
            "validation_workers": 2,
            "max_client_batch_size": 4,
            "router": "text-generation-router",
            "version": VERSION,
            "sha": None,
            "docker_label": None,
        }
