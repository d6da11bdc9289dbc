"""llama.cpp's llama-server: `/completion`, `/props`, `/slots`, its OpenAI routes and the `llamacpp:` metrics.

Captured from build b1-0c1e570. The KV cache is divided equally among the slots, so nothing is preempted. KV cache
usage is in `/slots` only, not in the metrics.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import orjson

from servetop.simulator.dialects.llama_cpp_completions import (
    BUILD,
    CHAT_TEMPLATE,
    PARAMS,
    TEXT_TEMPLATE,
    LlamaCppNativeResponse,
    LlamaCppNativeStream,
    LlamaCppResponse,
    LlamaCppStream,
    params_of,
)
from servetop.simulator.dialects.llama_cpp_metrics import LlamaCppCounters
from servetop.simulator.dialects.server_dialect import TEXT, Handler, ServerContext, ServerDialect, json_route
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.server.admission import CompletionFactories
from servetop.simulator.server.generation_request import ApiError, GenerationRequest, read_body, read_generation
from servetop.simulator.server.httpd import Connection, HttpRequest
from servetop.simulator.server.realtime import RealTimeEngine

_UNLIMITED = 2**31


class ContextError(ApiError):
    """The prompt is too long for a slot."""

    def __init__(self, prompt_tokens: int, *, limit: int) -> None:
        text = (
            f"request ({prompt_tokens} tokens) exceeds the available context size ({limit} tokens), try increasing it"
        )
        super().__init__(text, error_type="exceed_context_size_error")
        self.counts = {"n_prompt_tokens": prompt_tokens, "n_ctx": limit}


class LlamaCppServerDialect(ServerDialect):
    """llama-server with one model."""

    title = f"llama.cpp {BUILD}"
    profile = "llama-cpp"
    counters: LlamaCppCounters

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context, LlamaCppCounters())
        self._slot_numbers: dict[int, int] = {}
        """Slot number by index of the running sequence."""

    def open(self, engine: RealTimeEngine) -> None:
        super().open(engine)
        blocks = engine.scheduler.blocks
        slot_tokens = blocks.total // self.context.spec.batch_limit * blocks.block_size
        self.slot_tokens = min(slot_tokens, self.context.spec.context_limit)

    def routes(self) -> dict[tuple[str, str], Handler]:
        text = (partial(LlamaCppStream, template=TEXT_TEMPLATE), partial(LlamaCppResponse, template=TEXT_TEMPLATE))
        chat = (partial(LlamaCppStream, template=CHAT_TEMPLATE), partial(LlamaCppResponse, template=CHAT_TEMPLATE))
        native = partial(self._complete, chat=False, factories=(LlamaCppNativeStream, LlamaCppNativeResponse))
        return {
            ("POST", "/completion"): native,
            ("POST", "/completions"): native,
            ("POST", "/v1/completions"): partial(self._complete, chat=False, factories=text),
            ("POST", "/v1/chat/completions"): partial(self._complete, chat=True, factories=chat),
            ("GET", "/v1/models"): json_route(self._models),
            ("GET", "/models"): json_route(self._models),
            ("GET", "/health"): json_route(lambda: {"status": "ok"}),
            ("GET", "/props"): json_route(self._props),
            ("GET", "/slots"): json_route(self._slots),
            ("GET", "/metrics"): json_route(self.page, content_type=TEXT),
        }

    def page(self) -> bytes:
        """Return the metrics page; ApiError (501) if the server runs without `--metrics`."""
        if not self.context.options.metrics:
            text = "This server does not support metrics endpoint. Start it with `--metrics`"
            raise ApiError(text, status=501, error_type="not_supported_error")
        return self.counters.page()

    def error_body(self, error: ApiError) -> bytes:
        """Return `{"error": {"code", "message", "type"}}`, with the token counts for a prompt that is too long."""
        error_type = {"BadRequestError": "invalid_request_error"}.get(error.error_type, error.error_type)
        fields = {"code": error.status, "message": str(error), "type": error_type}
        return orjson.dumps({"error": fields | (error.counts if isinstance(error, ContextError) else {})})

    def unknown(self, _: HttpRequest, /) -> ApiError:
        return ApiError("File Not Found", status=404, error_type="not_found_error")

    def _complete(self, request: HttpRequest, to: Connection, *, chat: bool, factories: CompletionFactories) -> None:
        generation = self._read(read_body(request.body), chat=chat)
        factory = factories[0 if generation.stream else 1]
        self.admission.submit(generation, to, factory=factory, model=self.context.names[0], prefix="chatcmpl-")

    def _read(self, data: dict[str, Any], *, chat: bool) -> GenerationRequest:
        """Parse a request; its token limit is at most the room in a slot, where the server ends a completion."""
        limits = [data.get(name) for name in ("max_completion_tokens", "max_tokens", "n_predict")]
        unlimited = {**data, "max_tokens": 1, "max_completion_tokens": None, "min_tokens": None}
        generation = read_generation(unlimited, chat=chat, context_limit=_UNLIMITED)
        room = self.slot_tokens - generation.prompt_tokens
        if room < 1:
            raise ContextError(generation.prompt_tokens, limit=self.slot_tokens)
        limit = next((value for value in limits if isinstance(value, int) and value > 0), room)
        return dataclasses.replace(generation, max_tokens=min(limit, room), min_tokens=1)

    def _models(self) -> dict[str, object]:
        spec, name = self.context.spec, self.context.names[0]
        meta = {"n_ctx": self.slot_tokens, "n_ctx_train": spec.model.max_model_len, "n_embd": spec.model.hidden}
        meta |= {"n_params": int(spec.model.parameters), "size": int(spec.model.weight_bytes)}
        model = {"id": name, "aliases": [name], "tags": [], "object": "model", "created": self.started_at}
        entry = {"name": name, "model": name, "type": "model", "capabilities": ["completion"]}
        return {"models": [entry], "object": "list", "data": [{**model, "owned_by": "llamacpp", "meta": meta}]}

    def _props(self) -> dict[str, object]:
        return {
            "default_generation_settings": {"params": PARAMS, "n_ctx": self.slot_tokens},
            "total_slots": self.context.spec.batch_limit,
            "model_alias": self.context.names[0],
            "model_ftype": "F16",
            "model_path": self.context.spec.model.hub_name,
            "modalities": {"vision": False, "video": False, "audio": False},
            "endpoint_slots": True,
            "endpoint_props": False,
            "endpoint_metrics": self.context.options.metrics,
            "chat_template": "{% for m in messages %}{{m['content']}}{% endfor %}",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "build_info": BUILD,
            "is_sleeping": False,
        }

    def _slots(self) -> list[dict[str, object]]:
        scheduler = self.engine.scheduler
        running = {**scheduler.prefilling, **scheduler.batch.members}
        self._slot_numbers = {index: slot for index, slot in self._slot_numbers.items() if index in running}
        free = [slot for slot in range(self.context.spec.batch_limit) if slot not in self._slot_numbers.values()]
        self._slot_numbers |= dict(
            zip([index for index in running if index not in self._slot_numbers], free, strict=False)
        )
        busy = {slot: running[index] for index, slot in self._slot_numbers.items()}
        common = {"n_ctx": self.slot_tokens, "speculative": False}
        return [
            {"id": slot, **common, "is_processing": slot in busy, **(_task(busy[slot]) if slot in busy else {})}
            for slot in range(self.context.spec.batch_limit)
        ]


def _task(seq: SimSequence) -> dict[str, object]:
    """Return a slot's request in the format of `/slots`, whose `n_prompt_tokens` includes the generated tokens."""
    decoded = seq.sink.sent if seq.sink is not None else seq.generated
    state = {"has_next_token": True, "has_new_line": False}
    return {
        "id_task": seq.index,
        "n_prompt_tokens": seq.prompt_tokens + decoded,
        "n_prompt_tokens_processed": seq.prompt_tokens - seq.cached_tokens,
        "n_prompt_tokens_cache": seq.cached_tokens,
        "params": params_of(seq.sink.generation) if seq.sink is not None else PARAMS,
        "next_token": [{**state, "n_remain": seq.request.limit - decoded, "n_decoded": decoded}],
    }
