"""vLLM's OpenAI-compatible routes, and the simulator's own `/servetop/config`."""

from __future__ import annotations

from functools import partial

import orjson

from servetop.simulator.dialects.server_dialect import Handler, ServerContext, ServerDialect, json_route, metrics_route
from servetop.simulator.dialects.vllm_completions import VllmResponse, VllmStream
from servetop.simulator.dialects.vllm_metrics import VllmCounters
from servetop.simulator.dialects.vllm_responses import ResponsesObject, ResponsesStream, as_chat
from servetop.simulator.server.choices import read_generations
from servetop.simulator.server.generation_request import ApiError, read_body, read_generation, read_prompt
from servetop.simulator.server.httpd import Connection, HttpRequest
from servetop.simulator.server.tokens import token_ids

VERSION = "0.32.0"
"""The vLLM version whose API and metrics are emulated."""


class VllmServerDialect(ServerDialect):
    """vLLM's server, with an additional route that changes the batch size."""

    title = f"vLLM {VERSION}"
    profile = "vllm-0.2.1"

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context, VllmCounters(context.names[0], spec=context.spec, clock=context.clock))

    def routes(self) -> dict[tuple[str, str], Handler]:
        empty = json_route(lambda: b"")
        return {
            ("POST", "/v1/completions"): partial(self._complete, chat=False, prefix="cmpl-"),
            ("POST", "/v1/chat/completions"): partial(self._complete, chat=True, prefix="chatcmpl-"),
            ("POST", "/v1/responses"): self._respond,
            ("GET", "/v1/models"): json_route(self._models),
            ("GET", "/health"): empty,
            ("GET", "/ping"): empty,
            ("POST", "/ping"): empty,
            ("GET", "/version"): json_route(lambda: {"version": VERSION}),
            ("GET", "/load"): json_route(lambda: {"server_load": self.engine.scheduler.unfinished}),
            ("GET", "/metrics"): metrics_route(self.page),
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/reset_prefix_cache"): json_route(lambda: {"success": self.engine.reset_prefix_cache()}),
            ("POST", "/reset_mm_cache"): empty,
            ("POST", "/reset_encoder_cache"): empty,
            ("GET", "/servetop/config"): json_route(self._config),
            ("POST", "/servetop/config"): self._configure,
        }

    def _complete(self, request: HttpRequest, to: Connection, *, chat: bool, prefix: str) -> None:
        data = read_body(request.body)
        name = self.admission.resolve_model(data.get("model"))
        generations = read_generations(data, chat=chat, context_limit=self.context.spec.context_limit)
        first = generations[0][1]
        timed = self.context.options.per_request_metrics
        factory = partial(VllmStream if first.stream else VllmResponse, timed=timed)
        if len(generations) == 1:
            self.admission.submit(first, to, factory=factory, model=name, prefix=prefix)
        else:
            self.admission.submit_all(generations, to, factory=factory, model=name, prefix=prefix)

    def _respond(self, request: HttpRequest, to: Connection) -> None:
        factories = (ResponsesStream, ResponsesObject)
        self.generate(as_chat(read_body(request.body)), to, chat=True, factories=factories, prefix="resp_")

    def _models(self) -> dict[str, object]:
        common = {"object": "model", "created": self.started_at, "owned_by": "servetop"}
        limit = {"max_model_len": self.context.spec.context_limit}
        base, *adapters = self.context.names
        models = [{"id": base, **common, "root": self.context.spec.model.hub_name, "parent": None, **limit}]
        models += [{"id": name, **common, "root": name, "parent": base, **limit} for name in adapters]
        return {"object": "list", "data": models}

    def _tokenize(self, request: HttpRequest, to: Connection) -> None:
        data = read_body(request.body)
        if "messages" in data:
            generation = read_generation(data, chat=True, context_limit=2**31)
            prompt, count = generation.prompt, generation.prompt_tokens
        else:
            prompt, count = read_prompt(data.get("prompt"))
        ids = token_ids(prompt) if isinstance(prompt, str) else prompt
        body = {"count": count, "max_model_len": self.context.spec.context_limit, "tokens": ids, "token_strs": None}
        to.respond(200, orjson.dumps(body))

    def _config(self) -> dict[str, object]:
        scheduler, spec = self.engine.scheduler, self.context.spec
        return {
            "max_num_seqs": scheduler.limits.max_num_seqs,
            "max_num_batched_tokens": scheduler.limits.max_num_batched_tokens,
            "max_model_len": spec.context_limit,
            "kv_blocks": scheduler.blocks.total,
            "block_size": scheduler.blocks.block_size,
            "model": spec.model.name,
            "gpu": spec.gpu.name,
            "engine_profile": spec.engine.name,
            "policy": spec.engine.policy,
            "tensor_parallel": spec.tensor_parallel,
            "time_scale": spec.time_scale,
        }

    def _configure(self, request: HttpRequest, to: Connection) -> None:
        data = read_body(request.body)
        unknown = set(data) - {"max_num_seqs"}
        if unknown:
            raise ApiError(f"only max_num_seqs can change while the engine runs, not {min(unknown)}")
        limit = data.get("max_num_seqs")
        if type(limit) is not int or limit < 1:
            raise ApiError(f"max_num_seqs should be an integer of at least 1, not {limit}", param="max_num_seqs")
        self.engine.set_max_num_seqs(limit)
        to.respond(200, orjson.dumps(self._config()))
