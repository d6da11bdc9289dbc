"""SGLang 0.5: `/generate` with the text so far in each event, its OpenAI routes, and the `sglang:` metrics.

Routes: sglang 0.5.23, `srt/entrypoints/http_server.py`. The fields of its responses are unverified, because no server
or captured response was available.
"""

from __future__ import annotations

from typing import Any

import orjson

from servetop.simulator.dialects.completion_templates import (
    CompletionTemplate,
    TemplateCompletion,
    openai_json,
    phase_seconds,
    template_factories,
)
from servetop.simulator.dialects.server_dialect import (
    TEXT,
    Handler,
    ServerContext,
    ServerDialect,
    fastapi_error,
    json_route,
    metrics_route,
)
from servetop.simulator.dialects.sglang_metrics import SglangCounters
from servetop.simulator.server.generation_request import ApiError, read_body, read_generation
from servetop.simulator.server.httpd import STREAM_END, Connection, HttpRequest, chunk
from servetop.simulator.server.tokens import token_ids

VERSION = "0.5.23"
_CHOICE_END = '"logprobs":null,"finish_reason":$finish,"matched_stop":null'
_MESSAGE_FORMAT = '{"role":%s,"content":"%s","reasoning_content":null,"tool_calls":null}'
_MESSAGE = _MESSAGE_FORMAT % ('"assistant"', "$text")


def _text(text: str, *, usage: str = "null") -> str:
    return openai_json("text_completion", f'"text":"{text}",{_CHOICE_END}', usage=usage)


def _delta(role: str, content: str) -> str:
    return openai_json(
        "chat.completion.chunk", f'"delta":{_MESSAGE_FORMAT % (role, content)},{_CHOICE_END}', usage="null"
    )


TEXT_TEMPLATE = CompletionTemplate(
    token=_text("$word"),
    closing=_text(""),
    usage=openai_json("text_completion", usage="$usage"),
    whole=_text("$text", usage="$usage"),
)
CHAT_TEMPLATE = CompletionTemplate(
    role=_delta('"assistant"', ""),
    token=_delta("null", "$word"),
    closing=_delta("null", ""),
    usage=openai_json("chat.completion.chunk", usage="$usage"),
    whole=openai_json("chat.completion", f'"message":{_MESSAGE},{_CHOICE_END}', usage="$usage"),
)
BATCH = "pp_max_micro_batch_size"
"""The only setting that limits the running batch without a restart."""


class SglangServerDialect(ServerDialect):
    """`sglang.launch_server`, with `--enable-metrics` unless metrics are disabled."""

    title = f"SGLang {VERSION}"
    profile = "sglang-current"
    counters: SglangCounters

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context, SglangCounters(context.names[0]))

    def routes(self) -> dict[tuple[str, str], Handler]:
        text, chat = template_factories(TEXT_TEMPLATE), template_factories(CHAT_TEMPLATE)
        empty, server, model = json_route(lambda: b""), json_route(self._server_info), json_route(self._model_info)
        table: dict[tuple[str, str], Handler] = {
            ("POST", "/generate"): self._generate,
            ("POST", "/v1/completions"): self.generation_route(chat=False, factories=text, prefix=""),
            ("POST", "/v1/chat/completions"): self.generation_route(chat=True, factories=chat, prefix=""),
            ("GET", "/v1/models"): json_route(
                lambda: self.model_list("sglang", rooted=True, max_model_len=self.context.spec.context_limit)
            ),
            ("POST", "/set_internal_state"): self._set_internal_state,
        }
        table |= {(method, "/flush_cache"): self._flush_cache for method in ("GET", "POST")}
        table |= {("GET", path): empty for path in ("/health", "/health_generate", "/ready")}
        table |= {("GET", path): server for path in ("/server_info", "/get_server_info")}
        table |= {("GET", path): model for path in ("/model_info", "/get_model_info")}
        if self.context.options.metrics:
            table["GET", "/metrics"] = metrics_route(self.page)
        return table

    def error_body(self, error: ApiError) -> bytes:
        """Return the OpenAI error without the enclosing object, or FastAPI's error for an unknown path."""
        return fastapi_error(error, type=error.error_type, param=error.param)

    def _generate(self, request: HttpRequest, to: Connection) -> None:
        data = read_body(request.body)
        params = data.get("sampling_params") or {}
        body = {
            "prompt": data.get("text", data.get("input_ids")),
            "max_tokens": params.get("max_new_tokens", 128),
            "min_tokens": params.get("min_new_tokens"),
            "ignore_eos": params.get("ignore_eos"),
            "seed": params.get("sampling_seed"),
            "stream": data.get("stream"),
        }
        generation = read_generation(body, chat=False, context_limit=self.context.spec.context_limit)
        factory = SglangNativeStream if generation.stream else SglangNativeResponse
        self.admission.submit(generation, to, factory=factory, model=self.context.names[0], prefix="")

    def _set_internal_state(self, request: HttpRequest, to: Connection) -> None:
        args = read_body(request.body).get("server_args")
        limit = args.get(BATCH) if isinstance(args, dict) and set(args) == {BATCH} else None
        updated = isinstance(limit, int) and 1 <= limit <= self.context.spec.batch_limit
        if isinstance(limit, int) and updated:
            self.engine.set_max_num_seqs(limit)
        to.respond(200, orjson.dumps({"updated": updated, "server_args": args}))

    def _flush_cache(self, _: HttpRequest, to: Connection) -> None:
        text = b"Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting "
        text += b"requests, the operation will not be performed.)\n"
        idle = not self.engine.scheduler.unfinished
        to.respond(200 if idle and self.engine.reset_prefix_cache() else 400, text, content_type=TEXT)

    def _server_info(self) -> dict[str, object]:
        scheduler, spec = self.engine.scheduler, self.context.spec
        tokens = scheduler.blocks.total * scheduler.blocks.block_size
        return {
            "model_path": spec.model.hub_name,
            "served_model_name": self.context.names[0],
            "context_length": spec.context_limit,
            "max_running_requests": spec.batch_limit,
            "mem_fraction_static": spec.engine.memory_utilization,
            "max_total_num_tokens": tokens,
            "page_size": scheduler.blocks.block_size,
            "chunked_prefill_size": spec.batched_tokens,
            "tp_size": spec.tensor_parallel,
            "enable_metrics": self.context.options.metrics,
            "disable_radix_cache": not spec.engine.prefix_cache,
            "status": "ready",
            "version": VERSION,
            "internal_states": [{BATCH: scheduler.limits.max_num_seqs}],
        }

    def _model_info(self) -> dict[str, object]:
        return {
            "model_path": self.context.spec.model.hub_name,
            "is_generation": True,
            "preferred_sampling_params": None,
        }


class _Native(TemplateCompletion):
    """A completion of the native route `/generate`."""

    def cumulative_json(self, *, last: bool) -> bytes:
        """Return the text and the token counts so far as JSON."""
        assert self.seq is not None
        reasons = {"length": {"type": "length", "length": self.sent}, "stop": {"type": "stop", "matched": 2}}
        meta: dict[str, Any] = {
            "id": self.header.response_id,
            "finish_reason": reasons[self.finish_reason] if last else None,
            "prompt_tokens": self.generation.prompt_tokens,
            "completion_tokens": self.sent,
            "cached_tokens": self.seq.cached_tokens,
        }
        if last:
            meta["e2e_latency"] = phase_seconds(self)["e2e"]
        ids = [token_ids(word.decode())[0] for word in self.words]
        return b'{"text":"%b","output_ids":%b,"meta_info":%b}' % (self.text, orjson.dumps(ids), orjson.dumps(meta))


class SglangNativeStream(_Native):
    """One event per token with the text so far, then `[DONE]`."""

    def begin(self) -> None:
        """Send the HTTP head."""
        self.connection.start_stream()

    def token(self, *, last: bool) -> None:
        """Send an event with the text so far."""
        self.next_word()
        events = chunk(b"data: " + self.cumulative_json(last=last) + b"\n\n")
        if last:
            events += chunk(b"data: [DONE]\n\n") + STREAM_END
        self.connection.send(events)
        if last:
            self.connection.finish()


class SglangNativeResponse(_Native):
    """One JSON object at the end."""

    def token(self, *, last: bool) -> None:
        """Collect the word; respond after the last one."""
        self.next_word()
        if last:
            self.connection.respond(200, self.cumulative_json(last=True))
