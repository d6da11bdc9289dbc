"""The routes: vLLM's OpenAI-compatible ones, and `/servetop/config`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import orjson

from servetop.simulator.dialects.server_dialect import Handler, ServerContext, ServerDialect, negotiated, telling
from servetop.simulator.dialects.vllm_completions import StreamedAnswer, WholeAnswer
from servetop.simulator.dialects.vllm_metrics import VllmMetrics
from servetop.simulator.dialects.vllm_responses import StreamedResponse, WholeResponse, as_chat
from servetop.simulator.scheduling.sim_request import SimSequence
from servetop.simulator.server.choices import read_generations
from servetop.simulator.server.generation_request import ApiError, read_body, read_generation, read_prompt
from servetop.simulator.server.httpd import Connection, HttpRequest
from servetop.simulator.server.tokens import token_ids

VERSION = "0.32.0"
"""The vLLM whose wire and metrics are imitated."""


class EventTelemetry:
    """Feeds the engine's events to the metrics page."""

    def __init__(self, telemetry: VllmMetrics, *, clock: Callable[[], float]) -> None:
        self._telemetry = telemetry
        self._clock = clock

    @property
    def prompted(self) -> int:
        """Prompt tokens computed."""
        return self._telemetry.prompted

    @property
    def generated(self) -> int:
        """Output tokens given out."""
        return self._telemetry.generated

    def aborted(self) -> None:
        """A client went away before its answer was complete."""
        self._telemetry.aborted()

    def stepped(self, tokens: int) -> None:
        """An iteration ended."""
        self._telemetry.step_tokens.observe(tokens)

    def emitted(self, count: int, *, due: float) -> None:
        """Tokens were written to their sockets: their lateness is that of the last of them."""
        if count:
            self._telemetry.generated += count
            self._telemetry.lateness.observe(max(self._clock() - due, 0.0), count)

    def first(self, seq: SimSequence, at: float) -> None:
        """The first token of a request."""
        self._telemetry.first_token.observe(at - seq.arrival)
        self._telemetry.prompted += seq.prompt_tokens

    def gap(self, seconds: float, count: int) -> None:
        """Equal waits for the next token."""
        self._telemetry.token_gap.observe(seconds, count)

    def finished(self, seq: SimSequence, at: float) -> None:
        """A request is complete."""
        reason = "length" if seq.output_tokens >= seq.request.limit else "stop"
        self._telemetry.finished(seq, reason=reason, now=at)


class VllmServerDialect(ServerDialect):
    """vLLM's server, with a page of the simulator's own that can change the batch size."""

    title = f"vLLM {VERSION}"
    profile = "vllm-0.2.1"

    def __init__(self, site: ServerContext) -> None:
        self._telemetry = VllmMetrics(site.names[0])
        super().__init__(site, EventTelemetry(self._telemetry, clock=site.clock))

    def routes(self) -> dict[tuple[str, str], Handler]:
        """See Wire."""
        empty = telling(lambda: b"")
        return {
            ("POST", "/v1/completions"): partial(self._complete, chat=False, prefix="cmpl-"),
            ("POST", "/v1/chat/completions"): partial(self._complete, chat=True, prefix="chatcmpl-"),
            ("POST", "/v1/responses"): self._respond,
            ("GET", "/v1/models"): telling(self._models),
            ("GET", "/health"): empty,
            ("GET", "/ping"): empty,
            ("POST", "/ping"): empty,
            ("GET", "/version"): telling(lambda: {"version": VERSION}),
            ("GET", "/load"): telling(lambda: {"server_load": self.engine.scheduler.unfinished}),
            ("GET", "/metrics"): negotiated(self.page),
            ("POST", "/tokenize"): self._tokenize,
            ("GET", "/servetop/config"): telling(self._config),
            ("POST", "/servetop/config"): self._configure,
        }

    def page(self) -> bytes:
        """See Wire."""
        return self._telemetry.page(self.engine, self.site.spec).encode()

    def _complete(self, request: HttpRequest, to: Connection, *, chat: bool, prefix: str) -> None:
        data = read_body(request.body)
        name = self.intake.asked_model(data.get("model"))
        wanted = read_generations(data, chat=chat, context_limit=self.site.spec.context_limit)
        first = wanted[0][1]
        kind = StreamedAnswer if first.stream else WholeAnswer
        if len(wanted) == 1:
            self.intake.take(first, to, kind=kind, model=name, prefix=prefix)
        else:
            self.intake.take_all(wanted, to, kind=kind, model=name, prefix=prefix)

    def _respond(self, request: HttpRequest, to: Connection) -> None:
        kinds = (StreamedResponse, WholeResponse)
        self.ask(as_chat(read_body(request.body)), to, chat=True, kinds=kinds, prefix="resp_")

    def _models(self) -> dict[str, object]:
        common = {"object": "model", "created": self.born, "owned_by": "servetop"}
        limit = {"max_model_len": self.site.spec.context_limit}
        base, *adapters = self.site.names
        models = [{"id": base, **common, "root": self.site.spec.model.hub_name, "parent": None, **limit}]
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
        body = {"count": count, "max_model_len": self.site.spec.context_limit, "tokens": ids, "token_strs": None}
        to.respond(200, orjson.dumps(body))

    def _config(self) -> dict[str, object]:
        scheduler, spec = self.engine.scheduler, self.site.spec
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
