"""The routes: vLLM's OpenAI-compatible ones, and `/servetop/config`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import orjson

from servetop.core.clock import wall_clock
from servetop.engines.sim.answers import Answer, Heading, StreamedAnswer, WholeAnswer
from servetop.engines.sim.generation import ApiError, Generation, read_body, read_generation, read_prompt
from servetop.engines.sim.httpd import Connection, HttpRequest
from servetop.engines.sim.realtime import RealTimeEngine
from servetop.engines.sim.request import Request, Sequence
from servetop.engines.sim.responses import StreamedResponse, WholeResponse, as_chat
from servetop.engines.sim.settings import SimSpec
from servetop.engines.sim.telemetry import Telemetry
from servetop.engines.sim.tokens import block_hashes, draw_output_length, token_ids

AnswerKind = type[StreamedAnswer | WholeAnswer | StreamedResponse | WholeResponse]
VERSION = "0.32.0"
"""The vLLM whose wire and metrics are imitated."""
_TEXT = b"text/plain; version=0.0.4; charset=utf-8"


class EventTelemetry:
    """Feeds the engine's events to the metrics page."""

    def __init__(self, telemetry: Telemetry, *, clock: Callable[[], float]) -> None:
        self._telemetry = telemetry
        self._clock = clock

    def stepped(self, tokens: int) -> None:
        """An iteration ended."""
        self._telemetry.step_tokens.observe(tokens)

    def emitted(self, count: int, *, due: float) -> None:
        """Tokens were written to their sockets: their lateness is that of the last of them."""
        if count:
            self._telemetry.generated += count
            self._telemetry.lateness.observe(max(self._clock() - due, 0.0), count)

    def first(self, seq: Sequence, at: float) -> None:
        """The first token of a request."""
        self._telemetry.first_token.observe(at - seq.arrival)
        self._telemetry.prompted += seq.prompt_tokens

    def gap(self, seconds: float, count: int) -> None:
        """Equal waits for the next token."""
        self._telemetry.token_gap.observe(seconds, count)

    def finished(self, seq: Sequence, at: float) -> None:
        """A request is complete."""
        reason = "length" if seq.output_tokens >= seq.request.limit else "stop"
        self._telemetry.finished(seq, reason=reason, now=at)


class Api:
    """Answers the requests of all connections."""

    def __init__(
        self,
        engine: RealTimeEngine,
        spec: SimSpec,
        *,
        served_names: tuple[str, ...],
        telemetry: Telemetry,
        seed: int = 0,
    ) -> None:
        self._engine = engine
        self._spec = spec
        self._names = served_names
        """The model itself, then its adapters."""
        self._telemetry = telemetry
        self._lengths = random.Random(seed)
        self._born = int(wall_clock())
        self._count = 0
        self._routes: dict[tuple[str, str], Callable[[HttpRequest, Connection], None]] = {
            ("POST", "/v1/completions"): lambda request, to: self._generate(request, to, chat=False),
            ("POST", "/v1/chat/completions"): lambda request, to: self._generate(request, to, chat=True),
            ("POST", "/v1/responses"): self._respond,
            ("GET", "/v1/models"): self._models,
            ("GET", "/health"): lambda _, to: to.respond(200, b""),
            ("GET", "/ping"): lambda _, to: to.respond(200, b""),
            ("POST", "/ping"): lambda _, to: to.respond(200, b""),
            ("GET", "/version"): lambda _, to: to.respond(200, orjson.dumps({"version": VERSION})),
            ("GET", "/load"): self._load,
            ("GET", "/metrics"): self._metrics,
            ("POST", "/tokenize"): self._tokenize,
            ("GET", "/servetop/config"): lambda _, to: to.respond(200, orjson.dumps(self._config())),
            ("POST", "/servetop/config"): self._configure,
        }

    def route(self, request: HttpRequest, to: Connection) -> None:
        """Answer one request."""
        handler = self._routes.get((request.method, request.path))
        try:
            if handler is None:
                raise self._unknown(request)
            handler(request, to)
        except ApiError as error:
            to.respond(error.status, error.body())

    def _unknown(self, request: HttpRequest) -> ApiError:
        known = any(path == request.path for _, path in self._routes)
        text, status = ("Method Not Allowed", 405) if known else ("Not Found", 404)
        return ApiError(text, status=status, kind=text.replace(" ", ""))

    def _generate(self, request: HttpRequest, to: Connection, *, chat: bool) -> None:
        kinds = (StreamedAnswer, WholeAnswer)
        self._start(read_body(request.body), to, chat=chat, kinds=kinds, prefix="chatcmpl" if chat else "cmpl")

    def _respond(self, request: HttpRequest, to: Connection) -> None:
        data = as_chat(read_body(request.body))
        self._start(data, to, chat=True, kinds=(StreamedResponse, WholeResponse), prefix="resp")

    def _start(
        self, data: dict[str, Any], to: Connection, *, chat: bool, kinds: tuple[AnswerKind, AnswerKind], prefix: str
    ) -> None:
        name = self._asked_model(data.get("model", self._names[0]))
        generation = read_generation(data, chat=chat, context_limit=self._spec.context_limit)
        wanted = self._request(generation)
        self._check_fits(wanted)
        self._count += 1
        identity = f"{prefix}{'_' if prefix == 'resp' else '-'}{self._count:016x}"
        heading = Heading(identity, name, int(wall_clock()))
        answer = kinds[0 if generation.stream else 1](generation, to, heading=heading)
        answer.seq = self._engine.submit(wanted, answer)
        to.on_gone = lambda: self._gone(answer)

    def _gone(self, answer: Answer) -> None:
        if answer.seq is not None:
            self._engine.drop(answer.seq)
            self._telemetry.aborted()

    def _asked_model(self, model: object) -> str:
        if not isinstance(model, str) or model not in self._names:
            raise ApiError(f"The model `{model}` does not exist.", status=404, kind="NotFoundError", param="model")
        return model

    def _check_fits(self, request: Request) -> None:
        scheduler = self._engine.scheduler
        if not scheduler.accepts(Sequence(request, index=-1, arrival=0.0)):
            cache = scheduler.blocks.total * scheduler.blocks.block_size
            total = request.prompt_tokens + request.limit
            raise ApiError(
                f"This engine's KV cache holds {cache} tokens. However, you requested {request.limit} output "
                f"tokens and your prompt contains {request.prompt_tokens} input tokens, for a total of "
                f"{total} tokens. Please reduce the length of the input prompt or the number of requested output "
                f"tokens. (parameter=input_tokens, value={request.prompt_tokens})",
                param="input_tokens",
            )

    def _request(self, generation: Generation) -> Request:
        output = generation.max_tokens
        if not generation.ignore_eos:
            source = self._lengths if generation.seed is None else random.Random(generation.seed)
            output = draw_output_length(source, low=generation.min_tokens, high=generation.max_tokens)
        prefix: tuple[int, ...] = ()
        if self._spec.engine.prefix_cache:
            prefix = block_hashes(generation.prompt, self._spec.engine.block_size)
        return Request(generation.prompt_tokens, output, generation.max_tokens, prefix)

    def _models(self, _: HttpRequest, to: Connection) -> None:
        common = {"object": "model", "created": self._born, "owned_by": "servetop"}
        limit = {"max_model_len": self._spec.context_limit}
        base, *adapters = self._names
        models = [{"id": base, **common, "root": self._spec.model.hub_name, "parent": None, **limit}]
        models += [{"id": name, **common, "root": name, "parent": base, **limit} for name in adapters]
        to.respond(200, orjson.dumps({"object": "list", "data": models}))

    def _load(self, _: HttpRequest, to: Connection) -> None:
        to.respond(200, orjson.dumps({"server_load": self._engine.scheduler.unfinished}))

    def _metrics(self, _: HttpRequest, to: Connection) -> None:
        to.respond(200, self._telemetry.page(self._engine, self._spec).encode(), kind=_TEXT)

    def _tokenize(self, request: HttpRequest, to: Connection) -> None:
        data = read_body(request.body)
        if "messages" in data:
            generation = read_generation(data, chat=True, context_limit=2**31)
            prompt, count = generation.prompt, generation.prompt_tokens
        else:
            prompt, count = read_prompt(data.get("prompt"))
        ids = token_ids(prompt) if isinstance(prompt, str) else prompt
        body = {"count": count, "max_model_len": self._spec.context_limit, "tokens": ids, "token_strs": None}
        to.respond(200, orjson.dumps(body))

    def _config(self) -> dict[str, object]:
        scheduler, spec = self._engine.scheduler, self._spec
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
        self._engine.set_max_num_seqs(limit)
        to.respond(200, orjson.dumps(self._config()))
