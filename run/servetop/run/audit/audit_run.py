"""One audit: the simulator and a client in one loop, until the client ends or is ended."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from servetop.core.clock import ClockAnchor, MonotonicClock
from servetop.core.events import RequestRecord
from servetop.core.units import NS_PER_S
from servetop.run.audit.client_command import AuditedClient, ClientAddress
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.serve import ServerSettings, SimulatorServer, loop_factory, port_error, server_of
from servetop.simulator.server.observed_connection import ProbeRequests, RequestLog

_DISCONNECT_TIMEOUT = 1.0
"""Seconds for the server to notice that an ended client has closed its connections."""
_LAG_PERIOD = 0.05
"""Seconds between two measurements of the simulator's own delay."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedLoad:
    """What the simulator saw of a client, and how the client ended."""

    spec: SimSpec
    requests: Sequence[RequestRecord]
    """In order of arrival; instants are seconds since `anchor`."""
    others: Sequence[ProbeRequests]
    anchor: ClockAnchor
    seconds: float
    """How long the client ran."""
    lags: Sequence[float]
    """How late the simulator's event loop was, in seconds, at regular times."""
    exit_code: int | None
    """Of the client, negative for a signal."""
    ending: str
    """How the client ended, as in `exited with status 1`."""
    interrupted: str | None = None
    """The signal on which the audit ended the client; None if it did not."""
    timed_out: bool = False
    """Whether the client was ended because it ran too long."""
    last_lines: Sequence[str] = ()
    """Of the client's output."""


def observe_client(
    settings: ServerSettings, words: Sequence[str], *, timeout: float | None, on_line: Callable[[str], None]
) -> ObservedLoad:
    """Serve, run the command until it ends, `timeout` seconds have passed or a signal arrives, and end all of it.

    UsageError for settings that do not fit together, ServetopError for an address in use, EngineError for a command
    that cannot be run. `on_line` receives the lines of the client's output.
    """
    clock = MonotonicClock()
    log = RequestLog(clock.now)
    server = server_of(settings)
    server.observe(log.connect, log=_discard)
    audit = _Audit(server, log, clock=clock)
    gc.freeze()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(audit.run(settings, words, timeout=timeout, on_line=on_line))


def _discard(text: str, level: str = "INFO") -> None:
    """Drop a line of the server's log."""


@dataclass(slots=True, eq=False)
class _Audit:
    server: SimulatorServer
    log: RequestLog
    clock: MonotonicClock = field(kw_only=True)
    lags: list[float] = field(default_factory=list)
    signal: signal.Signals | None = None
    client: AuditedClient | None = None

    async def run(
        self, settings: ServerSettings, words: Sequence[str], *, timeout: float | None, on_line: Callable[[str], None]
    ) -> ObservedLoad:
        stop = asyncio.Event()
        with self._signals(stop):
            try:
                url = await self.server.start(settings.host, settings.port)
            except OSError as error:
                raise port_error(settings, error) from None
            address = ClientAddress(url=url, model=settings.served_model_name or settings.model)
            started = self.clock.now()
            try:
                self.client = await AuditedClient.start(words, address, clock=self.clock, on_line=on_line)
                timed_out = await self._until_end(self.client, stop, timeout=timeout)
                seconds = self.clock.now() - started
                return await self._end(self.client, seconds=seconds, timed_out=timed_out)
            finally:
                self.server.close()

    async def _until_end(self, client: AuditedClient, stop: asyncio.Event, *, timeout: float | None) -> bool:
        """Wait for the client to end, or for a reason to end it; return whether it ran too long."""
        waits = [asyncio.ensure_future(each) for each in (client.wait(), stop.wait())]
        lag = asyncio.ensure_future(self._measure_lag())
        try:
            done, _ = await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (lag, *waits):
                each.cancel()
            await asyncio.gather(lag, *waits, return_exceptions=True)
        return not done

    async def _end(self, client: AuditedClient, *, seconds: float, timed_out: bool) -> ObservedLoad:
        """End what is left of the client, and return what was seen."""
        await client.stop()
        deadline = self.clock.now() + _DISCONNECT_TIMEOUT
        while self.log.open_requests and self.clock.now() < deadline:
            await self.clock.sleep_until(self.clock.now() + 0.01)
        wall = self.clock.origin_epoch_ns() / NS_PER_S
        return ObservedLoad(
            spec=self.server.spec,
            requests=self.log.records(),
            others=self.log.others(),
            anchor=ClockAnchor(origin_ns=self.clock.origin_ns, wall_epoch_s=wall),
            seconds=seconds,
            lags=self.lags,
            exit_code=client.exit_code,
            ending=client.ending,
            interrupted=None if self.signal is None else self.signal.name,
            timed_out=timed_out,
            last_lines=client.last_lines,
        )

    async def _measure_lag(self) -> None:
        while True:
            due = self.clock.now() + _LAG_PERIOD
            await self.clock.sleep_until(due)
            self.lags.append(self.clock.now() - due)

    @contextlib.contextmanager
    def _signals(self, stop: asyncio.Event) -> Iterator[None]:
        """Handle SIGINT and SIGTERM, also those that were ignored at the start; a second one hurries the client."""
        loop = asyncio.get_running_loop()

        def received(number: signal.Signals) -> None:
            if stop.is_set() and self.client is not None:
                self.client.hurry()
            self.signal = self.signal or number
            stop.set()

        for number in _SIGNALS:
            loop.add_signal_handler(number, received, number)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
