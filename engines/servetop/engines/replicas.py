"""Several replicas of one engine behind the interface of a single one: samples merged, health checked."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from servetop.core.clock import Clock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.events import EngineSample, ReplicaSample
from servetop.core.interfaces.run_source import EngineFacts
from servetop.engines.attach import attach_engine
from servetop.engines.control.control_client import ServerClient
from servetop.engines.control.model_list import MODELS
from servetop.engines.control.server_url import ServerUrl
from servetop.engines.engine import Engine
from servetop.engines.handle import EXIT_LIMIT, EngineHandle
from servetop.engines.metrics.sample_merge import CounterTotals, merge_samples
from servetop.engines.metrics.series_collector import ReplicaReadings, SeriesReading
from servetop.engines.process.stop_report import StopReport

PROBE_INTERVAL = 1.0
"""Seconds between health checks of a failed replica."""
SAMPLE_LIFETIME = 2.0
"""Seconds for which a replica's last sample replaces a missing one."""

OnChange = Callable[[bool, str], None]
"""Receives the state of a replica, failed (False) or recovered (True), and a line of text."""


@dataclass(eq=False)
class _Replica:
    url: str
    config: EngineConfig
    handle: EngineHandle | None
    """None while the replica is unreachable."""
    last: EngineSample | None = None
    totals: CounterTotals = field(default_factory=CounterTotals)


class ReplicaGroup:
    """A group of replicas with the interface of `EngineHandle`, created by `attach_replicas`."""

    def __init__(
        self,
        handles: Sequence[EngineHandle],
        config: EngineConfig,
        *,
        clock: Clock,
        on_change: OnChange,
        headers: Mapping[str, str] | None,
    ) -> None:
        self.facts = _facts(handles)
        self.engine: Engine = handles[0].engine
        self.remark = next((handle.remark for handle in handles if handle.remark), "")
        self.died = asyncio.Event()
        """Set when no replica is left."""
        self._clock = clock
        self._headers = headers
        self._on_change = on_change
        self._fresh: list[ReplicaSample] = []
        self._readings = ReplicaReadings()
        self._exit_reason = ""
        self._late: dict[asyncio.Task[None], int] = {}
        """Scrapes still in progress from an earlier `sample`, with the replica's number."""
        self._replicas = [
            _Replica(handle.url, dataclasses.replace(config, url=handle.url, more_urls=(), front_door=None), handle)
            for handle in handles
        ]
        self._watchers = [asyncio.create_task(self._watch(each)) for each in self._replicas]

    @property
    def url(self) -> str:
        """URL of the first replica."""
        return self._replicas[0].url

    @property
    def is_local(self) -> bool:
        """Whether a replica runs on this machine."""
        return any(handle.is_local for handle in self._alive)

    @property
    def continuous_usage(self) -> bool:
        """Whether requests can request token counts in every chunk."""
        return self.engine.continuous_usage

    @property
    def metrics_trouble(self) -> str | None:
        """The first metrics error of a replica; None if there is none."""
        return next((handle.metrics_trouble for handle in self._alive if handle.metrics_trouble), None)

    @property
    def not_ready(self) -> str:
        """What the health page of the first replica that takes no requests says; empty if all are ready."""
        return next((handle.not_ready for handle in self._alive if handle.not_ready), "")

    @property
    def _alive(self) -> list[EngineHandle]:
        return [each.handle for each in self._replicas if each.handle is not None]

    async def sample(self) -> EngineSample | None:
        """Scrape all replicas concurrently and merge the samples; None if none could be read.

        A slow server does not delay the others: its scrape continues, and its next one starts afterwards.
        """
        at = self._clock.now()
        late = {number for task, number in self._late.items() if not task.done()}
        scrapes = {
            asyncio.create_task(self._scrape(number, each)): number
            for number, each in enumerate(self._replicas)
            if number not in late
        }
        try:
            await asyncio.wait(scrapes or self._late, timeout=self.engine.scrape_timeout)
        finally:
            self._late |= scrapes
        for task in [task for task in self._late if task.done()]:
            del self._late[task]
            task.result()
        for each in self._replicas:
            if each.last is not None and (each.handle is None or at - each.last.scrape_end > SAMPLE_LIFETIME):
                each.last = None
        samples = [each.last for each in self._replicas if each.last is not None]
        return merge_samples(samples, [each.totals for each in self._replicas]) if samples else None

    async def _scrape(self, number: int, replica: _Replica) -> None:
        handle = replica.handle
        sample = None if handle is None else await handle.sample()
        self._readings.add(number, None if handle is None else handle.take_series())
        if sample is None or sample is replica.last:
            return
        replica.last = sample
        replica.totals.add(sample)
        values = {each.name: getattr(sample, each.name) for each in dataclasses.fields(sample)}
        self._fresh.append(ReplicaSample(replica=number, **values))

    def drain(self) -> list[ReplicaSample]:
        """Return the samples of each replica since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def take_series(self) -> SeriesReading | None:
        """Return the newest reading of all servers' series for the engine page, once a second."""
        return self._readings.take()

    def count_models(self, names: Collection[str]) -> None:
        """Count the metrics of these models too."""
        for handle in self._alive:
            handle.count_models(names)

    def collect_series_next(self) -> None:
        """Read these series at the next scrape of each server."""
        self._readings.take_next()
        for handle in self._alive:
            handle.collect_series_next()

    async def set_max_num_seqs(self, max_num_seqs: int) -> bool:
        """Change the batch size of every replica; True if all of them have changed it."""
        changed = [await handle.set_max_num_seqs(max_num_seqs) for handle in self._alive]
        if all(changed):
            self.facts = dataclasses.replace(self.facts, max_num_seqs=max_num_seqs)
        return all(changed)

    async def reset_prefix_cache(self) -> str:
        """Empty the prefix cache of every replica; return the first reason why one was not emptied."""
        handles = self._alive
        reasons = await asyncio.gather(*(handle.reset_prefix_cache() for handle in handles))
        return next((f"{each.url}: {why}" for each, why in zip(handles, reasons, strict=True) if why), "")

    async def post(self, path: str, data: Mapping[str, Any], *, timeout: float) -> str:
        """Send one request to every replica; return the first reason why one failed."""
        reasons = await asyncio.gather(*(handle.post(path, data, timeout=timeout) for handle in self._alive))
        return next(filter(None, reasons), "")

    async def tokenize(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a text by the tokenizer of the first replica; empty if it does not offer it."""
        return await self._alive[0].tokenize(text) if self._alive else ()

    async def still_there(self) -> bool:
        """Whether at least one replica is still up."""
        alive = await asyncio.gather(*(handle.still_there() for handle in self._alive))
        if not any(alive):
            with suppress(TimeoutError):
                await asyncio.wait_for(self.died.wait(), EXIT_LIMIT)
        return not self.died.is_set()

    def exit_reason(self) -> str:
        """Return why the last replica failed; empty while one is up."""
        return self._exit_reason if self.died.is_set() else ""

    def log_tail(self, count: int = 4000) -> tuple[str, ...]:
        """Empty: servetop has no log of attached servers."""
        del count
        return ()

    def hurry(self) -> None:
        """Do nothing: attached servers are not stopped."""

    async def stop(self) -> StopReport:
        """Disconnect from all replicas, which keep running."""
        tasks = [*self._watchers, *self._late]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(handle.stop() for handle in self._alive))
        return StopReport()

    async def _watch(self, replica: _Replica) -> None:
        """Report the failure of a replica, and probe it until it recovers."""
        while replica.handle is not None:
            await replica.handle.died.wait()
            failed, replica.handle = replica.handle, None
            self._exit_reason = failed.exit_reason()
            await failed.stop()
            if not self._alive:
                self.died.set()
                return
            self._on_change(False, f"{self._exit_reason}: {len(self._alive)} of {len(self._replicas)} left")
            replica.handle = await self._reattach(replica)
            self._on_change(True, f"{self.engine.title} at {replica.url} is back")

    async def _reattach(self, replica: _Replica) -> EngineHandle:
        while True:
            await self._clock.sleep_until(self._clock.now() + PROBE_INTERVAL)
            try:
                handle = await attach_engine(replica.config, self._clock, headers=self._headers)
            except (EngineError, UsageError):
                continue
            if (handle.facts.name, handle.facts.model) == (self.facts.name, self.facts.model):
                return handle
            await handle.stop()


async def attach_replicas(
    config: EngineConfig, clock: Clock, *, on_change: OnChange, headers: Mapping[str, str] | None = None
) -> ReplicaGroup:
    """Attach to the servers at `config.url` and `config.more_urls` concurrently; `headers` go to each of them.

    EngineError if one cannot be attached to (with the first one's reason), or if engine or model differ; UsageError
    for a duplicate server, and for a metrics URL, which belongs to one server.
    """
    urls = [ServerUrl.parse(url).text for url in (config.url or "", *config.more_urls)]
    if (twice := next((url for url in urls if urls.count(url) > 1), None)) is not None:
        raise UsageError(f"{twice} is given twice: give each server's --url once")
    if config.metrics_url is not None:
        raise UsageError(
            "--metrics-url belongs to one server, but each of several --url has its own metrics: leave it out, or give "
            "one --url and a Prometheus server with the metrics of all"
        )
    configs = [dataclasses.replace(config, url=url, more_urls=(), front_door=None) for url in urls]
    attached = (attach_engine(each, clock, headers=headers) for each in configs)
    found = await asyncio.gather(*attached, return_exceptions=True)
    handles = [each for each in found if isinstance(each, EngineHandle)]
    try:
        for each in found:
            if isinstance(each, BaseException):
                raise each
        _refuse_differences(handles)
    except BaseException:
        await asyncio.gather(*(handle.stop() for handle in handles))
        raise
    return ReplicaGroup(handles, config, clock=clock, on_change=on_change, headers=headers)


async def check_load_balancer(
    url: str, *, api_key: str | None = None, headers: Mapping[str, str] | None = None
) -> None:
    """Raise EngineError if the load balancer that receives the requests does not respond."""
    client = ServerClient(url, api_key=api_key, headers=headers)
    try:
        result = await client.request(MODELS)
    finally:
        await client.close()
    if result.error:
        raise EngineError(f"nothing answers at {url} ({result.error}): is --front-door right?")


def _refuse_differences(handles: Sequence[EngineHandle]) -> None:
    kinds = {(handle.facts.title, handle.facts.model): handle for handle in handles}
    if len(kinds) > 1:
        kinds_found = ", ".join(f"{handle.url} is {title} with {model}" for (title, model), handle in kinds.items())
        raise EngineError(
            f"the servers differ: {kinds_found}; give several --url of one engine and model, or give a --model"
        )


def _facts(handles: Sequence[EngineHandle]) -> EngineFacts:
    facts = [handle.facts for handle in handles]
    blocks = [each.kv_blocks_total for each in facts if each.kv_blocks_total is not None]
    return dataclasses.replace(
        facts[0],
        replica_urls=tuple(handle.url for handle in handles),
        kv_blocks_total=sum(blocks) if len(blocks) == len(facts) else None,
    )
