"""The engine of one run: starts or attaches to it, samples it, changes its batch size, stops it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from servetop.core.clock import Clock
from servetop.core.config import EngineConfig, WorkloadConfig
from servetop.core.config_values.cell_engine import cell_engine
from servetop.core.errors import EngineError, UsageError
from servetop.core.events import EngineSample, GpuSample, LogLine, Note, Severity
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.core.tick import TICK_SECONDS
from servetop.engines.control.credentials import api_key
from servetop.engines.gpu.gpu_processes import OwnPids, any_process
from servetop.engines.gpu.gpu_sampler import RELEASE_SECONDS, GpuSampler
from servetop.engines.handle import EngineHandle, LaunchedServer
from servetop.engines.metrics.metrics_sampler import EngineSampler
from servetop.engines.metrics.series_collector import SeriesPacker
from servetop.engines.start import start_engine
from servetop.run.attached.attach_servers import attach_servers
from servetop.run.loop.engine_update import EngineUpdate
from servetop.run.loop.metrics_notes import MetricsNotes
from servetop.run.loop.stage_plan import EngineNeeds

if TYPE_CHECKING:
    from servetop.engines.replicas import ReplicaGroup
    from servetop.run.attached.request_format import RequestFormat

AS_CONFIGURED = EngineNeeds()
LOG_TAIL = 12
"""Lines of an engine's log that an error shows."""


class EngineSession:
    """One engine, through all restarts of a run."""

    def __init__(
        self,
        config: EngineConfig,
        clock: Clock,
        *,
        workload: WorkloadConfig | None = None,
        resets_cache: bool = False,
        sample_period: float = TICK_SECONDS,
        watched: bool = False,
    ) -> None:
        """The headers of `workload` go to the attached server, or servers, with every request.

        Metrics are read every `sample_period` seconds, less often if the engine or a slow page of a `watched` one asks.
        """
        self._config, self._clock = config, clock
        self._workload = workload or WorkloadConfig()
        self._resets_cache = resets_cache
        self._sample_period, self._watched = sample_period, watched
        self._handle: EngineHandle | ReplicaGroup | None = None
        self._replicas: ReplicaGroup | None = None
        """The handle, if there are several servers."""
        self._sampler: EngineSampler | None = None
        self._first_launched: LaunchedServer | None = None
        self._own_pids = OwnPids()
        self._gpus = GpuSampler(clock, owns=self._own_pids if config.url is None else any_process)
        self._ending: EngineHandle | ReplicaGroup | None = None
        """The last handle that was stopped."""
        self._holds_gpu_memory = False
        self._log_lines: list[LogLine] = []
        self._notes: list[Note] = []
        self._newest_gpus: tuple[GpuSample, ...] = ()
        self._last_samples: list[EngineSample] = []
        self._series: list[SeriesScrape] = []
        self._packer = SeriesPacker()
        self._metrics_notes = MetricsNotes()
        self._caveat_noted = False
        self._stopping: asyncio.Future[None] | None = None
        self.wanted = AS_CONFIGURED  # what the last start was for
        self.request_format: RequestFormat | None = None
        """How an unknown server wants its requests; None: as usual for its engine."""

    async def start(self, needs: EngineNeeds = AS_CONFIGURED) -> EngineFacts:
        """Start or attach to the engine; EngineError if that fails."""
        wanted = needs.max_num_seqs if needs.max_num_seqs is not None else self._config.max_num_seqs
        config = dataclasses.replace(cell_engine(self._config, needs.settings), max_num_seqs=wanted)
        self.wanted = needs
        if config.url is None:
            self._handle = await self._started(config, needs)
            # a restarted engine listens on the same port: the sender keeps its URL
            self._config = dataclasses.replace(self._config, port=urlsplit(self._handle.url).port)
            self._own_pids.follow(self._handle.facts.pid)
            self._first_launched = self._first_launched or self._handle.launched
        else:
            attached = await attach_servers(
                config,
                self._clock,
                self._workload,
                on_line=self._keep_log_line,
                on_change=self._note_servers,
                watched=self._watched,
            )
            self._handle, self._replicas = attached.handle, attached.replicas
            self.request_format = attached.request_format
            for remark in attached.remarks:
                self._note_servers(False, remark)
        self._metrics_notes.started()
        period = max(self._sample_period, self._handle.engine.scrape_period)
        sparing = self._watched and config.metrics_url is None  # a Prometheus server answers, not the engine
        self._sampler = EngineSampler(self._handle, self._clock, period=period, sparing=sparing)
        self._sampler.start()
        self._note_caveat(self._handle.engine.metrics_caveat)
        return self._handle.facts

    async def _started(self, config: EngineConfig, needs: EngineNeeds) -> EngineHandle:
        """Start the engine; settings of a cell that are refused before the start are a failed start too."""
        try:
            return await start_engine(config, self._clock, on_line=self._keep_log_line, resets_cache=self._resets_cache)
        except UsageError as error:
            if not needs.settings:
                raise
            raise EngineError(str(error)) from None

    def _note_caveat(self, caveat: str) -> None:
        """Note the limits of the engine's metrics, once per run."""
        if caveat and not self._caveat_noted:
            self._notes.append(Note(at=self._clock.now(), severity=Severity.INFO, source="metrics", text=caveat))
        self._caveat_noted = True

    def _keep_log_line(self, line: LogLine) -> None:
        self._log_lines.append(line)

    def _note_servers(self, good: bool, text: str) -> None:
        severity = Severity.INFO if good else Severity.WARNING
        self._notes.append(Note(at=self._clock.now(), severity=severity, source="engine", text=text))

    @property
    def handle(self) -> EngineHandle | ReplicaGroup:
        """The running engine; call `start` first."""
        assert self._handle is not None, "the engine was not started"
        return self._handle

    def first_launched(self) -> LaunchedServer | None:
        """Return how the engine was first started; None until it is ready, and for an attached one."""
        return self._first_launched

    @property
    def api_key(self) -> str | None:
        """The API key, from the environment; never stored."""
        return api_key(self._config, os.environ)

    @property
    def dead(self) -> bool:
        """Whether the engine exited, or stopped responding, by itself."""
        return self._handle is not None and self._handle.died.is_set()

    async def check_alive(self) -> None:
        """EngineError if the engine exited by itself: its failing requests can end the load before that is detected."""
        if self._handle is not None and not await self._handle.still_there():
            raise self.death()

    def death(self) -> EngineError:
        """Return the error for a dead engine: why it exited, and its last log lines."""
        return EngineError(self.handle.exit_reason(), self.handle.log_tail(LOG_TAIL))

    @property
    def provides(self) -> EngineNeeds:
        """What the engine that runs, or started last, provides."""
        limit = None if self._handle is None else self._handle.facts.max_num_seqs
        return dataclasses.replace(self.wanted, max_num_seqs=limit)

    async def change(self, needs: EngineNeeds) -> EngineFacts:
        """Make the engine what a cell needs, with a restart if it cannot be changed while it runs."""
        if self._handle is None:  # the last start failed
            return await self.start(needs)
        if not self.must_restart(needs) and await self.handle.set_max_num_seqs(needs.max_num_seqs or 0):
            return self.handle.facts
        await self.check_alive()  # a restart must not hide a crash
        await self.final_scrape()  # the restart resets its counters
        return await self.restart(needs)

    async def restart(self, needs: EngineNeeds) -> EngineFacts:
        """Stop the engine, or what is left of it, and start it again."""
        await self.stop()
        return await self.start(needs)

    def must_restart(self, needs: EngineNeeds) -> bool:
        """Whether the engine has to restart to provide this."""
        live = self._handle is not None and self._handle.facts.changes_batch_size_live
        return not live or not dataclasses.replace(needs, max_num_seqs=None).met_by(self.provides)

    def take_update(self) -> EngineUpdate:
        """Take the samples, log lines and notes received since the last call."""
        fresh = [*(self._sampler.drain() if self._sampler else ()), *self._last_samples]
        samples = sorted(
            fresh, key=lambda sample: sample.scrape_start
        )  # after a quick restart they may be out of order
        self._last_samples = []
        gpus = self._gpus.sample() if self._is_local else []
        self._newest_gpus = tuple(gpus)
        for text in self._gpus.newly_unreadable():
            self._notes.append(Note(at=self._clock.now(), severity=Severity.WARNING, source="gpu", text=text))
        self._holds_gpu_memory = self._holds_gpu_memory or any(each.engine_memory for each in gpus)
        if self._handle is not None:  # else it was stopped
            self._notes += self._metrics_notes.of(self._handle, samples, at=self._clock.now())
        self._pack_series()
        replicas = self._replicas.drain() if self._replicas is not None else []
        update = EngineUpdate(
            samples=samples,
            replicas=replicas,
            series=self._series,
            gpus=gpus,
            log_lines=self._log_lines,
            notes=self._notes,
        )
        self._log_lines, self._notes, self._series = [], [], []
        return update

    def _pack_series(self) -> None:
        """Pack the newest reading of the engine page's series, if there is one."""
        reading = self._handle.take_series() if self._handle is not None else None
        if reading is not None:
            self._series.append(self._packer.pack(reading))

    @property
    def _is_local(self) -> bool:
        """Whether the engine runs on this machine, so that the GPUs of this machine are its GPUs."""
        return self._config.url is None or (self._handle is not None and self._handle.is_local)

    def newest_sample(self) -> EngineSample | None:
        """Return the newest sample; None if the engine exports no metrics or is not running."""
        return self._sampler.newest if self._sampler else None

    def newest_gpus(self) -> tuple[GpuSample, ...]:
        """Return the newest sample of each GPU; empty without GPUs."""
        return self._newest_gpus

    async def final_scrape(self) -> None:
        """Scrape an engine that is about to stop, to record the final values of its counters.

        Takes at most one tick longer than the scrape timeout.
        """
        sample = None
        if self._handle and not self.dead:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._handle.engine.scrape_timeout + TICK_SECONDS):
                    self._pack_series()
                    self._handle.collect_series_next()
                    sample = await self._handle.sample()
        if sample is not None and (self._sampler is None or sample is not self._sampler.newest):
            self._last_samples.append(sample)
        self._pack_series()

    async def close(self) -> None:
        """Stop the engine and the GPU sampler."""
        await self.stop()
        self._gpus.close()

    async def stop(self) -> None:
        """Stop sampling, and the engine if servetop started it; leftover processes or memory are noted as an error."""
        if self._sampler:
            await self._sampler.stop()
            self._last_samples += self._sampler.drain()
            self._sampler = None
        handle, self._handle, self._replicas = self._handle, None, None
        if handle:
            self._ending = handle
            self._stopping = asyncio.ensure_future(self._end(handle))
        if self._stopping is not None:  # also if the run ends during a restart
            await asyncio.shield(self._stopping)

    def hurry(self) -> None:
        """Shorten the grace period of the engine, also during its shutdown: the user does not wait for the run."""
        for handle in (self._handle, self._ending):
            if handle is not None:
                handle.hurry()

    async def _end(self, handle: EngineHandle | ReplicaGroup) -> None:
        report = await handle.stop()
        if self._holds_gpu_memory and self._config.url is None:  # the next start needs it
            report = dataclasses.replace(report, gpu_memory=await self._gpus.left_over(RELEASE_SECONDS))
        if report.trouble:
            self._notes.append(
                Note(at=self._clock.now(), severity=Severity.ERROR, source="engine", text=report.trouble)
            )
