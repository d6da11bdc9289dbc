"""A running engine, started or attached: facts, samples, health check, batch size and graceful shutdown."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from servetop.core.clock import Clock
from servetop.core.errors import EngineError
from servetop.core.events import EngineSample
from servetop.core.interfaces.run_source import EngineFacts
from servetop.engines.control.control_client import HttpResult, ServerClient, bodies, is_local
from servetop.engines.control.http_body import excerpt
from servetop.engines.control.retry_delay import PageRetries
from servetop.engines.metrics.exported_tables import exported_metrics
from servetop.engines.metrics.metrics_source import MetricsScraper, metrics_error
from servetop.engines.metrics.series_collector import SeriesCollector, SeriesReading
from servetop.engines.metrics.server_pages import PageMemory, ServerPages
from servetop.engines.process.stop_report import StopReport, stop_process
from servetop.engines.watching.health_check import HealthCheck

if TYPE_CHECKING:
    from servetop.engines.engine import Engine
    from servetop.engines.process.engine_process import EngineProcess

PROBE_INTERVAL = 0.5
"""Seconds between health checks of an attached engine that is not scraped."""
SCRAPED_PROBE_INTERVAL = 2.0
"""Seconds without a response after which one that is scraped, every 1.75 s at least, is checked too."""
READY_INTERVAL = 5.0
"""Seconds between health checks of a watched engine whose metrics are read: whether it takes requests."""
REFUSED_LIMIT = 1.25
"""Seconds of refused connections after which an attached engine counts as stopped."""
SILENT_LIMIT = 60.0
"""Seconds without a response after which an attached engine counts as stopped."""
EXIT_LIMIT = 5.0
"""Seconds that `still_there` waits for an unresponsive engine to exit."""
RESET_PATIENCE = 5.0
"""Seconds for which a refused reset of the prefix cache is repeated."""
RESET_INTERVAL = 0.2
"""Seconds between two attempts."""
_NO_ENDPOINT = (404, 405)
_NOT_READY = 503


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedServer:
    """How the process of an engine was started."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    """All its variables; some are secret."""
    port: int | None


class EngineHandle:
    """A running engine, created by `start_engine` or `attach_engine`."""

    def __init__(
        self,
        engine: Engine,
        facts: EngineFacts,
        *,
        client: ServerClient,
        clock: Clock,
        process: EngineProcess | None = None,
        scraper: MetricsScraper | None = None,
    ) -> None:
        self.engine = engine
        self.facts = facts
        self.died = asyncio.Event()
        """Set when the engine exits or an attached one stops responding; not by `stop`."""
        self.metrics_trouble: str | None = None
        """Why `sample` returned None, in one line; None while metrics are read."""
        self.not_ready = ""
        """What the health page of an attached engine said last, if that was HTTP 503; empty: it is ready."""
        self.remark = ""
        """What to note about the server when the run begins; empty: nothing."""
        self.health: HealthCheck | None = None
        """What is sampled of a watched server until its metrics are read; None: nothing is."""
        self.retries: PageRetries | None = None
        """When a metrics page that could not be read is read again; None: with the next sample."""
        self._page_memory = PageMemory()
        self._series = SeriesCollector(exported_metrics(facts))
        self._scraper = scraper
        self._last_sample: EngineSample | None = None
        self._scraped_at = 0.0
        self._client = client
        self._clock = clock
        self._process = process
        self._stop_reason = ""
        self._responded_at = clock.now()
        self._watcher = asyncio.create_task(self._watch_process(process) if process else self._watch_server())

    @property
    def url(self) -> str:
        """Base URL for requests, without `/v1`."""
        return self._client.url

    @property
    def launched(self) -> LaunchedServer | None:
        """The server that servetop started; None for an attached engine."""
        process = self._process
        if process is None:
            return None
        return LaunchedServer(argv=process.argv, environment=process.environment, port=urlsplit(self.url).port)

    @property
    def is_local(self) -> bool:
        """Whether the engine runs on this machine, and uses its GPUs."""
        return is_local(self.url)

    @property
    def metrics_page(self) -> str:
        """URL of the metrics page, without its query; empty if there is none to read."""
        return "" if self._scraper is None else self._scraper.pages.where(self._scraper.reader.paths[0])

    @property
    def continuous_usage(self) -> bool:
        """Whether requests can request token counts in every chunk."""
        return self.engine.continuous_usage

    async def sample(self) -> EngineSample | None:
        """Scrape once; None if there is no metrics page, or if it cannot be read (`metrics_trouble`).

        A watched server whose metrics were never read is asked for its health: its sample has no values.
        """
        sample = await self._read_metrics()
        if self.health is None or sample is not None:
            self.health = None
            return sample
        answer = await self.health.ask()
        self._record_response(answer.result)
        if not answer.is_given:
            self.metrics_trouble = f"no answer to a health check ({answer.text})"
        else:
            self._series.collect({"": answer.page}, at=answer.end)
        return answer.sample

    async def _read_metrics(self) -> EngineSample | None:
        """Read the metrics page, unless it is not due after it could not be read.

        A Prometheus server returns its last scrape: the same object is returned until there is a newer one.
        """
        scraper = self._scraper
        if scraper is None:
            self.metrics_trouble = None if self.health is not None else self.metrics_trouble
            return None
        start = self._clock.now()
        if self.retries is not None and not self.retries.is_due(start):
            return None
        results = await scraper.fetch()
        end = self._clock.now()
        first = results[scraper.reader.paths[0]]
        if scraper.pages.url == self.url:
            self._record_response(first)
        last, age = self._last_sample, first.age
        if last is not None and first.ok and first.scraped_at and first.scraped_at == self._scraped_at:
            return last  # known by the server's own time: the age is off by the time of a slow response
        self._scraped_at = first.scraped_at
        pages = ServerPages(bodies(results), self._page_memory)
        sample = scraper.reader.sample(pages, start=start - age, end=end - age) if first.ok else None
        if sample is not None:
            self._series.collect(pages, at=end - age)
        self.metrics_trouble = None if sample else metrics_error(scraper, first, self.engine, url=self.url)
        if self.retries is not None:
            self.retries.add(end, read=sample is not None)
        self._last_sample = sample
        return sample

    def count_models(self, names: Collection[str]) -> None:
        """Count the metrics of these models too, as for a load on several of them."""
        if self._scraper is not None and self._scraper.models:
            self._scraper.models |= frozenset(names)

    def take_series(self) -> SeriesReading | None:
        """Return the newest reading of the series for the engine page, once; they are read once a second."""
        return self._series.take()

    def collect_series_next(self) -> None:
        """Read these series at the next scrape, however recent the last reading is."""
        self._series.collect_next()

    async def set_max_num_seqs(self, max_num_seqs: int) -> bool:
        """Change the batch size; True if it is now in effect, False if only a restart can change it.

        EngineError if the engine refuses the value.
        """
        change = self.engine.batch_size_change(max_num_seqs)
        if change is None:
            return False
        result = await self._client.request(change.path, method="POST", data=change.data)
        refused = change.refused_by is not None and change.refused_by.search(result.body) is not None
        if refused or not result.ok:
            reason = result.error or f"HTTP {result.status}: {excerpt(result.body)}"
            reason = self.engine.batch_size_help if refused else reason
            raise EngineError(f"{self.engine.title} refused batch size {max_num_seqs} ({reason})")
        self.facts = replace(self.facts, max_num_seqs=max_num_seqs)
        return True

    async def reset_prefix_cache(self, *, patience: float = RESET_PATIENCE) -> str:
        """Empty the prefix cache; return why it was not emptied, empty if it was.

        A refusal, because blocks are still in use, is retried for `patience` seconds.
        """
        reset, until = self.engine.cache_reset, self._clock.now() + patience
        if reset is None:
            return f"{self.engine.title} has no endpoint for it"
        while True:
            result = await self._client.request(reset.path, method="POST")
            refused = reset.refused_by is not None and reset.refused_by.search(result.body) is not None
            if result.ok and not refused:
                for path in reset.also:
                    await self._client.request(path, method="POST")
                return ""
            if result.status in _NO_ENDPOINT and reset.env:
                settings = " ".join(f"{name}={value}" for name, value in reset.env.items())
                return f"POST {reset.path}: HTTP {result.status}: start {self.engine.title} with {settings}"
            if self._clock.now() >= until or result.status in _NO_ENDPOINT:
                return result.error or f"POST {reset.path}: HTTP {result.status}: {excerpt(result.body)}"
            await self._clock.sleep_until(self._clock.now() + RESET_INTERVAL)

    async def post(self, path: str, data: Mapping[str, Any], *, timeout: float) -> str:
        """Send one request to this server that belongs to no load; return why it failed, empty if it did not."""
        result = await self._client.request(path, method="POST", data=data, timeout=timeout)
        return "" if result.ok else result.error or f"HTTP {result.status}: {excerpt(result.body)}"

    async def tokenize(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a text by the server's tokenizer; empty if it does not offer it."""
        from servetop.engines.control.tokenize_text import tokenize_text

        return await tokenize_text(self._client, text, model=self.facts.model, field=self.engine.tokenize_field)

    async def still_there(self) -> bool:
        """Health check; an unresponsive engine has EXIT_LIMIT to exit, because it closes its port first."""
        if self.died.is_set():
            return False
        result = await self._client.request(self.engine.ready_path)
        if result.error or (self._process is not None and not result.ok):
            with suppress(TimeoutError):
                await asyncio.wait_for(self.died.wait(), EXIT_LIMIT)
        return not self.died.is_set()

    def exit_reason(self) -> str:
        """Return why the engine exited, in one line; empty while it runs."""
        if not self.died.is_set():
            return ""
        if self._process is None:
            return f"{self.engine.title} at {self.url} stopped responding ({self._stop_reason})"
        cause = self.engine.failure_reason(self.log_tail())
        return f"{self.engine.title} {self._process.exit_description()}" + (f": {cause}" if cause else "")

    def log_tail(self, count: int = 4000) -> tuple[str, ...]:
        """Return the last lines of its log, oldest first; empty for an attached engine."""
        return self._process.log.tail(count) if self._process else ()

    async def stop(self) -> StopReport:
        """Stop a managed engine with all its processes, or disconnect from an attached one; may be called again."""
        self._watcher.cancel()
        await asyncio.gather(self._watcher, return_exceptions=True)
        if self._scraper is not None:
            await self._scraper.pages.close()
        await self._client.close()
        return await stop_process(self._process, self.engine, port=urlsplit(self.url).port)

    def hurry(self) -> None:
        """Shorten the shutdown of a managed engine to seconds, also one in progress."""
        if self._process is not None:
            self._process.hurry()

    async def _watch_process(self, process: EngineProcess) -> None:
        await process.exited.wait()
        self.died.set()

    async def _watch_server(self) -> None:
        scraped = self._scraper is not None and self._scraper.pages.url == self.url
        interval = SCRAPED_PROBE_INTERVAL if scraped else PROBE_INTERVAL
        checked_at = self._clock.now()
        while not self._stop_reason:
            latest = math.inf if self.retries is None else checked_at + READY_INTERVAL
            await self._clock.sleep_until(min(self._responded_at + interval, latest))
            if self._clock.now() >= min(self._responded_at + interval, latest):
                checked_at, result = self._clock.now(), await self._client.request(self.engine.ready_path)
                self.not_ready = f"{self.engine.ready_path}: HTTP 503" if result.status == _NOT_READY else ""
                self._record_response(result)
                await self._clock.sleep_until(self._clock.now() + PROBE_INTERVAL / 2)
        self.died.set()

    def _record_response(self, result: HttpResult) -> None:
        silence = self._clock.now() - self._responded_at
        if not result.error:
            self._responded_at = self._clock.now()
        elif silence >= (REFUSED_LIMIT if result.refused else SILENT_LIMIT):
            self._stop_reason = f"no response for {silence:.0f} s" if result.late else result.error
