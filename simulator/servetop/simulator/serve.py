"""The simulator as an HTTP server with an engine's API: `python -m servetop.simulator.serve`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import datetime

from servetop.core.clock import MonotonicClock, wall_clock
from servetop.core.errors import EngineError, ExitCode, ServetopError
from servetop.core.text.sanitize import sanitize_line
from servetop.simulator.dialects.registry import (
    check_emulation_options,
    server_dialect_class,
)
from servetop.simulator.dialects.server_dialect import EmulationOptions, ServerContext
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.simulator.serve_options import api_key, parser
from servetop.simulator.server.httpd import Connection, HttpRequest
from servetop.simulator.server.realtime import RealTimeEngine

TIMER_TICK = 1e-3
"""uvloop's timers have a resolution of one millisecond, so the last part of a wait polls the loop."""
LOG_PERIOD = 10.0
"""Seconds between two log lines of engine statistics, as in vLLM."""


def main(argv: list[str] | None = None) -> int:
    """Parse the options, serve until SIGTERM or SIGINT, and return the exit code."""
    options = parser().parse_args(argv)
    try:
        server = _server(options)
    except ServetopError as error:
        _write(f"error: {error}")
        return int(ExitCode.USAGE)
    return _run(server, host=options.host, port=options.port)


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

    async def serve(self, host: str, port: int) -> int:
        """Serve until a signal arrives, then return 0; OSError if the address is unavailable."""
        loop = asyncio.get_running_loop()
        url = await self.start(host, port)
        stopped: asyncio.Future[int] = loop.create_future()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _stop, stopped, int(number))
        log(f"Starting simulated {self._dialect.title} server on {url}")
        log("Application startup complete: ready")
        caught = await stopped
        log(f"Shutting down on {signal.Signals(caught).name}")
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
            lambda: Connection(route, connections=self._connections), host, port, backlog=2048
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
            raise EngineError(f"metrics port {port} on {host} {what}: choose another with --metrics-port") from None
        self.metrics_url = f"http://{host}:{bound_port}/metrics"
        log(f"Metrics on {self.metrics_url}")

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
        log(
            f"servetop simulator, {self._dialect.title} dialect: {spec.engine.name} ({spec.engine.policy}) "
            f"on {spec.gpu.name}"
        )
        log(f"Using max model len {spec.context_limit}, tensor parallel {spec.tensor_parallel}")
        log(f"Model {spec.model.name}: weights take {spec.model.weight_bytes / 2**30:.2f} GiB")
        log(f"# GPU blocks: {blocks.total}, block size: {blocks.block_size}, max_num_seqs: {spec.batch_limit}")
        tokens = blocks.total * blocks.block_size
        log(
            f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for {spec.context_limit:,} tokens per request: "
            f"{tokens / spec.context_limit:.2f}x"
        )
        if tokens < spec.context_limit:
            log(f"requests of more than {tokens} tokens will be rejected: they do not fit into the KV cache", "WARNING")

    def _log_statistics(self) -> None:
        self._reporter = self._loop.call_later(LOG_PERIOD, self._log_statistics)
        now = (self._dialect.counters.prompt_tokens, self._dialect.counters.generated_tokens)
        prompted, generated = ((a - b) / LOG_PERIOD for a, b in zip(now, self._log_before, strict=True))
        self._log_before = now
        if not (prompted or generated or self.scheduler.unfinished):
            return
        log(
            f"Engine 000: Avg prompt throughput: {prompted:.1f} tokens/s, Avg generation throughput: {generated:.1f} "
            f"tokens/s, Running: {self.scheduler.running} reqs, Waiting: {len(self.scheduler.waiting)} reqs, "
            f"GPU KV cache usage: {self._engine.kv_usage:.1%}, Preemptions: {self.scheduler.preemptions}"
        )


def log(text: str, level: str = "INFO") -> None:
    """Write one line to stderr in vLLM's log format."""
    stamp = datetime.fromtimestamp(wall_clock()).strftime("%m-%d %H:%M:%S")
    with contextlib.suppress(BrokenPipeError):  # the log's reader has exited; keep serving
        _write(f"{level} {stamp} [servetop.sim] {text}")


def _write(line: str) -> None:
    """Write one sanitized line to stderr: it may contain names from outside, and stderr may be a terminal."""
    sys.stderr.write(sanitize_line(line) + "\n")  # noqa: TID251 - sanitized here
    sys.stderr.flush()  # noqa: TID251


def _stop(stopped: asyncio.Future[int], number: int) -> None:
    if not stopped.done():
        stopped.set_result(number)


def _run(server: SimulatorServer, *, host: str, port: int) -> int:
    gc.freeze()
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(server.serve(host, port))
    except EngineError as error:
        _write(f"error: {error}")
        return int(ExitCode.RUN_FAILED)
    except OSError as error:
        what = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        _write(f"error: port {port} on {host} {what}: choose another with --port")
        return int(ExitCode.RUN_FAILED)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _server(options: argparse.Namespace) -> SimulatorServer:
    names = ("max_num_seqs", "kv_blocks", "block_size", "max_model_len", "tensor_parallel", "time_scale", "policy")
    from_options = {name: getattr(options, name) for name in names}
    settings = {name: value for name, value in from_options.items() if value is not None}
    profile = options.engine_profile or server_dialect_class(options.dialect).profile
    emulated = EmulationOptions(
        metrics=not options.no_metrics,
        metrics_port=options.metrics_port,
        max_concurrent_requests=options.max_concurrent_requests,
        per_request_metrics=options.enable_per_request_metrics,
        api_key=api_key(options.api_key_env, os.environ),
    )
    check_emulation_options(options.dialect, emulated)
    return SimulatorServer(
        sim_spec(options.model, gpu=options.gpu, engine=profile, settings=settings),
        served_name=options.served_model_name or options.model,
        adapters=options.lora_modules,
        seed=options.seed,
        dialect=options.dialect,
        options=emulated,
    )


if __name__ == "__main__":
    sys.exit(main())
