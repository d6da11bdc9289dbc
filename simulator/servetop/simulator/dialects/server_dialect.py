"""Base of the simulated dialects: routes, admission to the engine, error bodies and metrics page."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import orjson

from servetop.core.clock import wall_clock
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.server.admission import Admission, CompletionFactories
from servetop.simulator.server.exposition import openmetrics
from servetop.simulator.server.generation_request import ApiError, read_body, read_generation
from servetop.simulator.server.httpd import Connection, HttpRequest
from servetop.simulator.server.realtime import Events, RealTimeEngine

Handler = Callable[[HttpRequest, Connection], None]
TEXT = b"text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = b"application/openmetrics-text; version=1.0.0; charset=utf-8"


class EventCounters(Events, Protocol):
    """Counters updated by the engine's events; tokens are counted from the start of the server."""

    engine: RealTimeEngine | None
    """The simulated engine, from which gauges are read; set when the server starts."""

    @property
    def prompt_tokens(self) -> int:
        """The number of computed prompt tokens."""
        ...

    @property
    def generated_tokens(self) -> int:
        """The number of sent output tokens."""
        ...

    def aborted(self) -> None:
        """Count a request whose client disconnected."""
        ...

    def page(self) -> bytes:
        """Return the metrics page in Prometheus text format."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulationOptions:
    """Options of the emulated engines' servers."""

    metrics: bool = True
    """False: emulate SGLang and llama.cpp without metrics."""
    metrics_port: int = 0
    """Triton's metrics port; 0: two above the server's port, or a free one if that is 0 too."""
    max_concurrent_requests: int = 128
    """TGI's limit of concurrent requests; more are rejected with 429."""
    per_request_metrics: bool = False
    """Send vLLM's `metrics` with each completion: queue, prefill and decode time."""
    api_key: str = field(default="", repr=False)
    """The key that requests have to carry; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """What a dialect serves, and its clock; `names` are the served models, the base model first."""

    spec: SimSpec
    names: tuple[str, ...]
    clock: Callable[[], float]
    seed: int = 0
    options: EmulationOptions = EmulationOptions()


class ServerDialect:
    """The HTTP API of one engine. Subclasses define `routes`, and `error_body` in the engine's format."""

    title: ClassVar[str]
    """The emulated engine and version, for the log."""
    profile: ClassVar[str]
    """The default engine profile."""
    separate_metrics_port: ClassVar[bool] = False
    """Whether the metrics have a separate port (`route_metrics`)."""

    def __init__(self, context: ServerContext, counters: EventCounters) -> None:
        self.context = context
        self.counters = counters
        self.started_at = int(wall_clock())
        self._routes: dict[tuple[str, str], Handler] = {}

    def open(self, engine: RealTimeEngine) -> None:
        """Start to serve this engine; there are no routes before."""
        self.engine = self.counters.engine = engine
        context = self.context
        self.admission = Admission(
            engine, context.spec, served_names=context.names, aborted=self.counters.aborted, seed=context.seed
        )
        self._routes = self.routes()

    def routes(self) -> dict[tuple[str, str], Handler]:
        """Return the handlers by method and path."""
        raise NotImplementedError

    def route(self, request: HttpRequest, to: Connection) -> None:
        """Handle one request."""
        handler = self._routes.get((request.method, request.path))
        try:
            self._check_key(request)
            if handler is None:
                raise self.unknown(request)
            handler(request, to)
        except ApiError as error:
            to.respond(error.status, self.error_body(error))

    def _check_key(self, request: HttpRequest) -> None:
        """Raise ApiError if a request that needs the key lacks it; health and metrics are open, as in vLLM."""
        key = self.context.options.api_key
        if not key or not (request.method == "POST" or request.path.startswith("/v1")):
            return
        if not hmac.compare_digest(request.authorization, b"Bearer " + key.encode()):
            raise ApiError("Unauthorized", status=401, error_type="Unauthorized")

    def route_metrics(self, request: HttpRequest, to: Connection) -> None:
        """Handle one request to the separate metrics port."""
        if (request.method, request.path) == ("GET", "/metrics"):
            to.respond(200, self.page(), content_type=TEXT)
        else:
            to.respond(404, b"", content_type=b"text/plain")

    def page(self) -> bytes:
        """Return the metrics page in Prometheus text format."""
        return self.counters.page()

    def error_body(self, error: ApiError) -> bytes:
        """Return the body of an error response; vLLM's by default."""
        return error.body()

    def unknown(self, request: HttpRequest) -> ApiError:
        """Return the error for an unknown path or method."""
        known = any(path == request.path for _, path in self._routes)
        text, status = ("Method Not Allowed", 405) if known else ("Not Found", 404)
        return ApiError(text, status=status, error_type=text.replace(" ", ""))

    def model_list(self, owner: str, *, rooted: bool = False, **fields: object) -> dict[str, object]:
        """Return the body of `/v1/models`; `rooted` adds the name as `root`, and `fields` are added to each model."""
        common = {"object": "model", "created": self.started_at, "owned_by": owner}
        roots = {name: {"root": name} if rooted else {} for name in self.context.names}
        return {
            "object": "list",
            "data": [{"id": name, **common, **roots[name], **fields} for name in self.context.names],
        }

    def generate(
        self,
        data: dict[str, Any],
        to: Connection,
        *,
        chat: bool,
        factories: CompletionFactories,
        prefix: str,
    ) -> SimSequence:
        """Admit an OpenAI request; `factories` create the completion of a streamed and of a complete response."""
        name = self.admission.resolve_model(data.get("model"))
        generation = read_generation(data, chat=chat, context_limit=self.context.spec.context_limit)
        return self.admission.submit(
            generation, to, factory=factories[0 if generation.stream else 1], model=name, prefix=prefix
        )

    def generation_route(self, *, chat: bool, factories: CompletionFactories, prefix: str) -> Handler:
        """Return the handler of a route that calls `generate`."""

        def handle(request: HttpRequest, to: Connection) -> None:
            self.generate(read_body(request.body), to, chat=chat, factories=factories, prefix=prefix)

        return handle


def flat_error(error: ApiError, **fields: object) -> bytes:
    """Return an OpenAI error without the enclosing `error` object, as several engines send it."""
    return orjson.dumps({"object": "error", "message": str(error), **fields, "code": error.status})


def fastapi_error(error: ApiError, **fields: object) -> bytes:
    """Return FastAPI's body of 404 and 405 for an unknown path or method, and `flat_error` for every other error."""
    unknown = error.error_type in ("NotFound", "MethodNotAllowed")
    return orjson.dumps({"detail": str(error)}) if unknown else flat_error(error, **fields)


def metrics_route(page: Callable[[], bytes]) -> Handler:
    """Return the handler of a metrics page, in OpenMetrics if the client accepts it, as Python's Prometheus client."""

    def handle(request: HttpRequest, to: Connection) -> None:
        if b"application/openmetrics-text" in request.accept:
            to.respond(200, openmetrics(page().decode()).encode(), content_type=OPENMETRICS)
        else:
            to.respond(200, page(), content_type=TEXT)

    return handle


def json_route(body: Callable[[], object], *, content_type: bytes = b"application/json") -> Handler:
    """Return the handler of a route that sends the result of `body`: bytes unchanged, other values as JSON."""

    def handle(_: HttpRequest, to: Connection) -> None:
        result = body()
        to.respond(200, result if isinstance(result, bytes) else orjson.dumps(result), content_type=content_type)

    return handle
