"""The engine of one run: started or attached, sampled, changed, stopped; what it says is kept until asked for."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from servetop.core.bounds import LARGEST_VALUE
from servetop.core.clock import Clock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.core.events import EngineSample, GpuSample, LogLine, Note, ReplicaSample, Severity
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import TICK_SECONDS
from servetop.engines.attach import attach_engine
from servetop.engines.engine import EngineHandle
from servetop.engines.gpu.gpu_processes import OwnPids, everybody
from servetop.engines.gpu.gpu_sampler import RELEASE_SECONDS, GpuSampler
from servetop.engines.metrics.metrics_reader import GAUGES
from servetop.engines.metrics.metrics_sampler import EngineSampler
from servetop.engines.start import api_key, start_engine

if TYPE_CHECKING:
    from servetop.engines.replicas import ReplicaGroup

LOG_TAIL = 12
"""Lines of an engine's log that an error shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUpdate:
    """What came in since it was asked last."""

    samples: list[EngineSample] = field(default_factory=list)
    replicas: list[ReplicaSample] = field(default_factory=list)
    """Where there are several servers, of each alone."""
    gpus: list[GpuSample] = field(default_factory=list)
    log_lines: list[LogLine] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


class EngineSession:
    """One engine, through all the restarts of a run."""

    def __init__(self, config: EngineConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._handle: EngineHandle | ReplicaGroup | None = None
        self._replicas: ReplicaGroup | None = None
        """The same, where there are several servers."""
        self._sampler: EngineSampler | None = None
        self._own_pids = OwnPids()
        self._gpus = GpuSampler(clock, owns=self._own_pids if config.url is None else everybody)
        self._ending: EngineHandle | ReplicaGroup | None = None
        """The last one that was asked to stop."""
        self._holds_gpu_memory = False
        self._log_lines: list[LogLine] = []
        self._notes: list[Note] = []
        self._newest_gpus: tuple[GpuSample, ...] = ()
        self._last_samples: list[EngineSample] = []
        self._trouble: str | None = None
        self._cautioned = False
        self._lost_fields: set[str] = set()
        self._stopping: asyncio.Future[None] | None = None

    async def start(self, *, max_num_seqs: int | None) -> EngineFacts:
        """Start or attach; EngineError when that fails."""
        wanted = max_num_seqs if max_num_seqs is not None else self._config.max_num_seqs
        config = dataclasses.replace(self._config, max_num_seqs=wanted)
        if config.front_door is not None:
            from servetop.engines.replicas import refuse_closed_door

            await refuse_closed_door(config.front_door, api_key=self.api_key)
        if config.url is None:
            self._handle = await start_engine(config, self._clock, on_line=self._hear)
            # a restarted engine answers where the first one did: the sender keeps its URL
            self._config = dataclasses.replace(self._config, port=urlsplit(self._handle.url).port)
            self._own_pids.follow(self._handle.facts.pid)
        elif config.more_urls:
            from servetop.engines.replicas import attach_replicas  # for several servers only

            self._replicas = await attach_replicas(config, self._clock, on_change=self._replica_changed)
            self._handle = self._replicas
        else:
            self._handle = await attach_engine(config, self._clock, on_line=self._hear)
        self._sampler = EngineSampler(self._handle, self._clock, period=self._handle.engine.scrape_period)
        self._sampler.start()
        self._note_caveat(self._handle.engine.metrics_caveat)
        return self._handle.facts

    def _note_caveat(self, caveat: str) -> None:
        """What a reader of the metrics must know; once a run, however often the engine is restarted."""
        if caveat and not self._cautioned:
            self._notes.append(Note(at=self._clock.now(), severity=Severity.INFO, source="metrics", text=caveat))
        self._cautioned = True

    def _hear(self, line: LogLine) -> None:
        self._log_lines.append(line)

    def _replica_changed(self, back: bool, words: str) -> None:
        severity = Severity.INFO if back else Severity.WARNING
        self._notes.append(Note(at=self._clock.now(), severity=severity, source="engine", text=words))

    @property
    def handle(self) -> EngineHandle | ReplicaGroup:
        """The running engine; only after `start`."""
        assert self._handle is not None, "the engine was not started"
        return self._handle

    @property
    def api_key(self) -> str | None:
        """From the environment; never stored."""
        return api_key(self._config, os.environ)

    @property
    def dead(self) -> bool:
        """It ended, or stopped answering, without being asked to."""
        return self._handle is not None and self._handle.died.is_set()

    async def refuse_dead(self) -> None:
        """EngineError when it ended by itself: requests that fail all at once end the load before that is known."""
        if self._handle is not None and not await self._handle.still_there():
            raise self.death()

    def death(self) -> EngineError:
        """Why it ended, and its last lines; of an engine that is dead."""
        return EngineError(self.handle.exit_reason(), self.handle.log_tail(LOG_TAIL))

    async def change_batch(self, max_num_seqs: int) -> EngineFacts:
        """Set the batch-size limit, by a restart if the engine cannot change it while it runs."""
        if await self.handle.set_max_num_seqs(max_num_seqs):
            return self.handle.facts
        await self.refuse_dead()  # a restart must not hide that it crashed
        await self.final_scrape()  # its counters go with it
        await self.stop()
        return await self.start(max_num_seqs=max_num_seqs)

    @property
    def needs_restart(self) -> bool:
        """A change of batch size costs a restart."""
        return not self.handle.facts.changes_batch_size_live

    def take_update(self) -> EngineUpdate:
        """Samples, log lines and troubles since the last call."""
        fresh = [*(self._sampler.drain() if self._sampler else ()), *self._last_samples]
        samples = sorted(fresh, key=lambda sample: sample.scrape_start)  # a quick restart: one before the other's last
        self._last_samples = []
        gpus = self._gpus.sample() if self._is_here else []
        self._newest_gpus = tuple(gpus)
        self._holds_gpu_memory = self._holds_gpu_memory or any(each.engine_memory for each in gpus)
        self._note_metrics_trouble()
        self._note_lost_fields(samples)
        replicas = self._replicas.drain() if self._replicas is not None else []
        news = EngineUpdate(samples=samples, replicas=replicas, gpus=gpus, log_lines=self._log_lines, notes=self._notes)
        self._log_lines, self._notes = [], []
        return news

    @property
    def _is_here(self) -> bool:
        """The engine runs on this machine, whose GPUs are then those to watch."""
        return self._config.url is None or (self._handle is not None and self._handle.is_local)

    def newest_sample(self) -> EngineSample | None:
        """None when the engine exports nothing, or is not there."""
        return self._sampler.newest if self._sampler else None

    def newest_gpus(self) -> tuple[GpuSample, ...]:
        """One per device; empty without GPUs."""
        return self._newest_gpus

    def _note_metrics_trouble(self) -> None:
        """A page that vanishes or turns to garbage is noted once, and once more when it is back."""
        if self._handle is None:
            return  # it was stopped: nothing is back
        trouble = self._handle.metrics_trouble
        if trouble != self._trouble:
            words = trouble or "metrics are back"
            severity = Severity.WARNING if trouble else Severity.INFO
            self._notes.append(Note(at=self._clock.now(), severity=severity, source="metrics", text=words))
        self._trouble = trouble

    def _note_lost_fields(self, samples: Sequence[EngineSample]) -> None:
        """What the engine told at its start and tells no more, or in numbers that cannot be; once for each field."""
        if self._handle is None:
            return
        told = set(GAUGES) - set(self._handle.facts.not_exported) - self._lost_fields
        lost = sorted(name for name in told if any(getattr(sample, name) is None for sample in samples))
        if lost:
            words = f"no usable value of {', '.join(lost)}: missing, negative, NaN or above {LARGEST_VALUE:g}"
            self._notes.append(Note(at=self._clock.now(), severity=Severity.WARNING, source="metrics", text=words))
        self._lost_fields.update(lost)

    async def final_scrape(self) -> None:
        """One more scrape of an engine that is about to go, so that its counters' final values are recorded.

        It takes a tick longer at most than a group of servers waits for one that is late.
        """
        sample = None
        if self._handle and not self.dead:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._handle.engine.scrape_timeout + TICK_SECONDS):
                    sample = await self._handle.sample()
        if sample is not None and (self._sampler is None or sample is not self._sampler.newest):
            self._last_samples.append(sample)

    async def close(self) -> None:
        """Stop for good."""
        await self.stop()
        self._gpus.close()

    async def stop(self) -> None:
        """Stop sampling, and the engine if servetop started it; what it leaves behind is noted as an error."""
        if self._sampler:
            await self._sampler.stop()
            self._last_samples += self._sampler.drain()
            self._sampler = None
        handle, self._handle, self._replicas = self._handle, None, None
        if handle:
            self._ending = handle
            self._stopping = asyncio.ensure_future(self._end(handle))
        if self._stopping is not None:  # a run that is ended during a restart still waits for the engine to be gone
            await asyncio.shield(self._stopping)

    def hurry(self) -> None:
        """Nobody waits for the run any more: its engine gets seconds to end, also one that is being stopped."""
        for handle in (self._handle, self._ending):
            if handle is not None:
                handle.hurry()

    async def _end(self, handle: EngineHandle | ReplicaGroup) -> None:
        report = await handle.stop()
        if self._holds_gpu_memory and self._config.url is None:  # the next start needs it
            report = dataclasses.replace(report, gpu_memory=await self._gpus.left_over(RELEASE_SECONDS))
        if report.trouble:
            note = Note(at=self._clock.now(), severity=Severity.ERROR, source="engine", text=report.trouble)
            self._notes.append(note)
