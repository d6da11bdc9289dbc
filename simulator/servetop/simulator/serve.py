"""The simulator as an HTTP server with an engine's API: `servetop serve`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from servetop.core.clock import MonotonicClock, wall_clock
from servetop.core.errors import ExitCode, ServetopError
from servetop.core.text.sanitize import sanitize_line
from servetop.simulator.dialects.registry import (
    check_emulation_options,
    check_names,
    server_dialect_class,
)
from servetop.simulator.dialects.server_dialect import EmulationOptions, ServerContext
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.simulator.server.httpd import Connection, HttpRequest
from servetop.simulator.server.realtime import RealTimeEngine

TIMER_TICK = 1e-3
"""uvloop's timers have a resolution of one millisecond, so the last part of a wait polls the loop."""
LOG_PERIOD = 10.0
"""Seconds between two log lines of engine statistics, as in vLLM."""


class ConnectionFactory(Protocol):
    """Makes the connection of a new client; `Connection` itself is one."""

    def __call__(self, route: Callable[[HttpRequest, Connection], None], *, connections: set[Connection]) -> Connection:
        """Return a connection that hands its requests to `route`, and is a member of `connections` while open."""
        ...


class Log(Protocol):
    """Receives the lines of a server's log."""

    def __call__(self, text: str, level: str = "INFO") -> None:
        """Receive one line."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What a server simulates, and where it listens."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0: a free one."""
    model: str = "llama-2-7b"
    served_model_name: str = ""
    """The name that clients use; empty: `model`."""
    lora_modules: Sequence[str] = ()
    """Further served names, each as NAME or NAME=PATH."""
    gpu: str = "a100-40"
    dialect: str = "vllm"
    engine_profile: str = ""
    """Empty: the dialect's."""
    simulation: Mapping[str, object] = field(default_factory=dict)
    """Settings that replace those of the profiles, as `model.settings.apply` documents them."""
    emulated: EmulationOptions = field(default_factory=EmulationOptions)
    seed: int = 0


def serve(settings: ServerSettings) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit code; UsageError, or ServetopError for a port in use."""
    server = server_of(settings)
    gc.freeze()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(server.serve(settings.host, settings.port))
    except OSError as error:
        raise port_error(settings, error) from None


def server_of(settings: ServerSettings) -> SimulatorServer:
    """Return a server that is not listening yet; UsageError for settings that do not fit together."""
    check_emulation_options(settings.dialect, settings.emulated)
    names = {"--served-model-name": settings.served_model_name, "--lora-modules": settings.lora_modules}
    check_names(settings.dialect, names)
    profile = settings.engine_profile or server_dialect_class(settings.dialect).profile
    spec = sim_spec(settings.model, gpu=settings.gpu, engine=profile, settings=settings.simulation)
    return SimulatorServer(
        spec,
        served_name=settings.served_model_name or settings.model,
        adapters=settings.lora_modules,
        seed=settings.seed,
        dialect=settings.dialect,
        options=settings.emulated,
    )


def port_error(settings: ServerSettings, error: OSError) -> ServetopError:
    """Return the error to report for an address that cannot be listened at."""
    what = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
    return ServetopError(f"port {settings.port} on {settings.host} {what}: choose another with --port")


class SimulatorServer:
    """One simulated server: engine, dialect and listeners."""

    def __init__(
        self,
        spec: SimSpec,
        *,
        served_name: str,
        adapters: Sequence[str] = (),
        seed: int = 0,
        dialect: str = "vllm",
        options: EmulationOptions | None = None,
    ) -> None:
        self._connect: ConnectionFactory = Connection
        self._log: Log = write_log
        self.spec, options = spec, options or EmulationOptions()
        self.scheduler = build_scheduler(spec)
        names = (served_name, *(adapter.partition("=")[0] for adapter in adapters))
        self._clock = MonotonicClock()
        context = ServerContext(spec=spec, names=names, clock=self._clock.now, seed=seed, options=options)
        self._dialect = server_dialect_class(dialect)(context)
        self._metrics_port = options.metrics_port
        self.metrics_url = ""
        """The metrics URL; empty before the start."""
        self._listeners: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._timer: asyncio.Handle | None = None
        self._log_before = (0, 0)

    def observe(self, connections: ConnectionFactory, *, log: Log) -> None:
        """Make the connections and write the log in another way; call before the start."""
        self._connect, self._log = connections, log

    async def serve(self, host: str, port: int) -> int:
        """Serve until a signal arrives, then return 0; OSError if the address is unavailable."""
        loop = asyncio.get_running_loop()
        url = await self.start(host, port)
        stopped: asyncio.Future[int] = loop.create_future()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _stop, stopped, int(number))
        self._log(f"Starting simulated {self._dialect.title} server on {url}")
        self._log("Application startup complete: ready")
        caught = await stopped
        self._log(f"Shutting down on {signal.Signals(caught).name}")
        self.close()
        return int(ExitCode.OK)

    async def start(self, host: str, port: int) -> str:
        """Listen, on a free port if `port` is 0, and return the server's URL."""
        self._loop = asyncio.get_running_loop()
        clock = self._clock.now
        self._engine = RealTimeEngine(self.scheduler, clock=clock, wake_at=self._wake_at, events=self._dialect.counters)
        self._dialect.open(self._engine)
        self._log_facts()
        bound_port = await self._listen(self._dialect.route, host, port)
        self.metrics_url = f"http://{host}:{bound_port}/metrics"
        if self._dialect.separate_metrics_port:
            await self._listen_for_metrics(host, self._metrics_port or (port and port + 2))
        self._reporter = self._loop.call_later(LOG_PERIOD, self._log_statistics)
        return f"http://{host}:{bound_port}"

    def close(self) -> None:
        """Stop listening and close all connections."""
        self._reporter.cancel()
        for listener in self._listeners:
            listener.close()
        for connection in list(self._connections):
            connection.abort()

    async def _listen(self, route: Callable[[HttpRequest, Connection], None], host: str, port: int) -> int:
        listener = await self._loop.create_server(
            lambda: self._connect(route, connections=self._connections), host, port, backlog=2048
        )
        self._listeners.append(listener)
        return int(listener.sockets[0].getsockname()[1])

    async def _listen_for_metrics(self, host: str, port: int) -> None:
        try:
            bound_port = await self._listen(self._dialect.route_metrics, host, port)
        except (OSError, OverflowError) as error:
            self._listeners[0].close()
            in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            what = "is in use" if in_use else "cannot be used"
            raise ServetopError(f"metrics port {port} on {host} {what}: choose another with --metrics-port") from None
        self.metrics_url = f"http://{host}:{bound_port}/metrics"
        self._log(f"Metrics on {self.metrics_url}")

    def _wake_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        delay = at - self._clock.now()
        if delay < TIMER_TICK:
            self._timer = self._loop.call_soon(self._engine.wake)
        elif delay < float("inf"):
            self._timer = self._loop.call_later(delay - delay % TIMER_TICK, self._engine.wake)

    def _log_facts(self) -> None:
        spec, blocks = self.spec, self.scheduler.blocks
        self._log(
            f"servetop simulator, {self._dialect.title} dialect: {spec.engine.name} ({spec.engine.policy}) "
            f"on {spec.gpu.name}"
        )
        self._log(f"Using max model len {spec.context_limit}, tensor parallel {spec.tensor_parallel}")
        self._log(f"Model {spec.model.name}: weights take {spec.model.weight_bytes / 2**30:.2f} GiB")
        self._log(f"# GPU blocks: {blocks.total}, block size: {blocks.block_size}, max_num_seqs: {spec.batch_limit}")
        tokens = blocks.total * blocks.block_size
        self._log(
            f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for {spec.context_limit:,} tokens per request: "
            f"{tokens / spec.context_limit:.2f}x"
        )
        if tokens < spec.context_limit:
            self._log(
                f"requests of more than {tokens} tokens will be rejected: they do not fit into the KV cache", "WARNING"
            )

    def _log_statistics(self) -> None:
        self._reporter = self._loop.call_later(LOG_PERIOD, self._log_statistics)
        now = (self._dialect.counters.prompt_tokens, self._dialect.counters.generated_tokens)
        prompted, generated = ((a - b) / LOG_PERIOD for a, b in zip(now, self._log_before, strict=True))
        self._log_before = now
        if not (prompted or generated or self.scheduler.unfinished):
            return
        self._log(
            f"Engine 000: Avg prompt throughput: {prompted:.1f} tokens/s, Avg generation throughput: {generated:.1f} "
            f"tokens/s, Running: {self.scheduler.running} reqs, Waiting: {len(self.scheduler.waiting)} reqs, "
            f"GPU KV cache usage: {self._engine.kv_usage:.1%}, Preemptions: {self.scheduler.preemptions}"
        )


def write_log(text: str, level: str = "INFO") -> None:
    """Write one line to stderr in vLLM's log format."""
    stamp = datetime.fromtimestamp(wall_clock()).strftime("%m-%d %H:%M:%S")
    with contextlib.suppress(BrokenPipeError):  # the log's reader has exited; keep serving
        line = sanitize_line(f"{level} {stamp} [servetop.sim] {text}")  # it may contain names from outside
        sys.stderr.write(line + "\n")  # noqa: TID251 - sanitized here
        sys.stderr.flush()  # noqa: TID251


def _stop(stopped: asyncio.Future[int], number: int) -> None:
    if not stopped.done():
        stopped.set_result(number)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes uvloop's event loops; None, for asyncio's own, without it."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
