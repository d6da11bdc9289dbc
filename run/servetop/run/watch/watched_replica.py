"""One of several watched servers: attaches, reads its metrics, and waits for it while it is gone."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from servetop.analysis.fleet.sample_lifetimes import SAMPLE_LIFETIME, rare_lifetimes
from servetop.core.clock import Clock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.events import EngineSample, Note, ReplicaSample, Severity
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState, facts_text
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.interfaces.series_scrape import PROCESS_START, SeriesScrape
from servetop.core.text import formats
from servetop.engines.control.retry_delay import retry_delay
from servetop.engines.handle import EngineHandle
from servetop.engines.metrics.metrics_sampler import EngineSampler
from servetop.engines.metrics.sample_merge import COUNTERS, CounterIncreases
from servetop.engines.metrics.series_collector import SeriesPacker
from servetop.engines.watching.scraped_server import SCRAPED_PERIOD, attach_listed
from servetop.run.loop.metrics_notes import MetricsNotes
from servetop.run.watch.addresses import WatchedAddress
from servetop.run.watch.failure_notes import UNREACHABLE, AttachFailure

SAMPLE_PERIOD = 1.0
"""Seconds between two readings of the metrics of a server, unless its page takes long (`scrape_period`)."""
_SPREAD = 0.618034
"""Multiples of the golden ratio spread the readings of all servers evenly over the period."""
PROCESS_CPU = "process_cpu_seconds_total"
"""CPU time of the server's process: a series of most Prometheus clients, read where the engine page has it."""
_SAME_START = 1.0
"""Two times at which a process started that differ by less (seconds) are one."""
_SAMPLE_FIELDS = tuple(each.name for each in dataclasses.fields(EngineSample))
_NAMED_FACTS = ("title", "version", "model", "max_num_seqs", "max_model_len", "kv_blocks_total")
"""Facts that are compared after a restart."""


@dataclass(kw_only=True, eq=False)
class ReplicaUpdate:
    """What one server added since the last tick."""

    samples: list[ReplicaSample] = field(default_factory=list)
    series: list[SeriesScrape] = field(default_factory=list)
    changes: list[ReplicaChange] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    failures: list[AttachFailure] = field(default_factory=list)


class WatchedReplica:
    """Watches one server in a task of its own, so that it delays no other; `stop` ends the task."""

    def __init__(
        self, number: int, address: WatchedAddress, config: EngineConfig, *, clock: Clock, headers: Mapping[str, str]
    ) -> None:
        self.number = number
        self.address = address
        self._config = dataclasses.replace(config, url=address.url, more_urls=(), front_door=None)
        self._clock, self._headers = clock, headers
        self._handle: EngineHandle | None = None
        self._sampler: EngineSampler | None = None
        self._packer, self._metrics_notes = SeriesPacker(), MetricsNotes()
        self._update = ReplicaUpdate()
        self._newest: EngineSample | None = None
        self._last: EngineSample | None = None
        """The sample of the last reading, at the end of the watch."""
        self._ends: deque[float] = deque(maxlen=3)
        """When its newest samples were read, or scraped by a Prometheus server."""
        self._restarted = asyncio.Event()
        self._attached_now = False
        """Whether no sample was read since the last attempt to attach succeeded."""
        self._remark = ""
        """The remark of its last attachment, which is noted only when it changes."""
        self._read_since_attached = False
        """Whether the series were read since then."""
        self._process = (math.nan, math.nan)
        """When its process started, seconds since 1970, and its CPU time in seconds; NaN if it does not export that."""
        self._gone_since: float | None = None
        self._not_ready = ""
        """What its health page said while its metrics were read, if it takes no requests."""
        self.totals = CounterIncreases()
        """What it counted while it was watched, through restarts."""
        self.facts: EngineFacts | None = None
        """What was last known about it; None until it responds."""
        self.failure: EngineError | UsageError | None = None
        """Why the last attempt to attach failed; None while it responds, and before the first result."""
        self.tried = asyncio.Event()
        """Set after the first attempt to attach."""
        self._change(ReplicaState.ATTACHING)
        self._task = asyncio.create_task(self._watch())

    @property
    def newest(self) -> EngineSample | None:
        """Its newest sample; None while it cannot be read, but that of a Prometheus server counts as long as it did."""
        if self._sampler is None or self.is_rare:
            return None if self._sampler is None else self._newest
        return self._last or self._sampler.newest

    @property
    def is_rare(self) -> bool:
        """Whether its metrics are those that a Prometheus server has of it, as often as that scrapes."""
        return self.facts is not None and bool(self.facts.through)

    def is_current(self, at: float) -> bool:
        """Whether its newest sample stands for it at `at` seconds."""
        newest = self.newest
        if newest is None:
            return False
        lifetime = float(rare_lifetimes(np.array(self._ends))[-1]) if self.is_rare and self._ends else SAMPLE_LIFETIME
        return at - newest.scrape_end <= lifetime

    def rename(self, address: WatchedAddress) -> None:
        """Take another name."""
        self.address = address
        self._change(ReplicaState.ATTACHED if self._state.responds else self._state, self._reason)

    def take(self) -> ReplicaUpdate:
        """Take what was received since the last call."""
        self._collect()
        update, self._update = self._update, ReplicaUpdate()
        return update

    async def stop(self, *, removed: bool = False) -> None:
        """End the task; a server that is `removed` is not listed any more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._detach()
        if removed:
            self._change(ReplicaState.REMOVED)

    async def final_scrape(self) -> None:
        """Read the last values of its counters, if it responds in time."""
        if self._handle is not None and not self._handle.died.is_set():
            self._handle.collect_series_next()
            sample = await self._handle.sample()
            self._add_samples([sample] if sample is not None and sample is not self._newest else [])
            self._last = sample

    async def _watch(self) -> None:
        lost_at = self._clock.now()
        while True:
            if await self._attach():
                await self._until_lost()
                lost_at = self._clock.now()
                continue
            await self._clock.sleep_until(self._clock.now() + retry_delay(self._clock.now() - lost_at))

    async def _attach(self) -> bool:
        """Attach, and begin to read the metrics; whether that worked."""
        try:
            metrics = self.address.metrics
            handle = await attach_listed(self._config, self._clock, headers=self._headers, metrics=metrics)
        except (EngineError, UsageError) as error:
            self._note_failure(error)
            self.tried.set()
            return False
        before, self.facts, self._handle, self.failure = self.facts, handle.facts, handle, None
        self._metrics_notes.started()
        if handle.remark and handle.remark != self._remark:
            self._note(Severity.WARNING, handle.remark)
        self._remark = handle.remark
        self._note_attached(before, handle.facts)
        self._restarted.clear()
        self._attached_now, self._read_since_attached = True, False
        period = SCRAPED_PERIOD if handle.facts.through else max(SAMPLE_PERIOD, handle.engine.scrape_period)
        offset = period * (self.number * _SPREAD % 1.0)
        self._sampler = EngineSampler(handle, self._clock, period=period, offset=offset, sparing=True)
        self._sampler.start()
        self.tried.set()
        return True

    async def _until_lost(self) -> None:
        """Wait until the server does not respond any more, or its counters started again at 0."""
        assert self._handle is not None
        waits = [asyncio.ensure_future(each.wait()) for each in (self._handle.died, self._restarted)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        if self._handle.died.is_set():
            self._gone_since = self._clock.now()
            self._change(ReplicaState.GONE, self._handle.exit_reason())
            self._note(Severity.WARNING, f"{self._handle.exit_reason()}: the watch waits for it")
        await self._detach()

    async def _detach(self) -> None:
        self._collect()
        handle, sampler, self._handle, self._sampler = self._handle, self._sampler, None, None
        self._not_ready = ""
        if sampler is not None:
            await sampler.stop()
        if handle is not None:
            await handle.stop()

    def _collect(self) -> None:
        """Take new samples from the sampler, and note what they have lost."""
        if self._handle is None or self._sampler is None:
            return
        fresh = self._sampler.drain()
        notes = self._metrics_notes.of(self._handle, fresh, at=self._clock.now())
        self._update.notes += [dataclasses.replace(each, text=f"{self.address.name}: {each.text}") for each in notes]
        self._add_samples(fresh)
        if self._sampler.newest is not None and self._handle.not_ready != self._not_ready and self._state.responds:
            self._not_ready = self._handle.not_ready
            self._change(ReplicaState.ATTACHED, self._reason)

    def _add_samples(self, samples: Sequence[EngineSample]) -> None:
        for sample in samples:
            if self._newest is not None and _counts_again(self._newest, sample):
                self._note_restart(again=not self._attached_now)
            self._newest, self._attached_now = sample, False
            self._ends.append(sample.scrape_end)
            self.totals.add(sample)
            values = {name: getattr(sample, name) for name in _SAMPLE_FIELDS}
            self._update.samples.append(ReplicaSample(replica=self.number, **values))
        reading = None if self._handle is None else self._handle.take_series()
        if reading is not None:
            self._compare_process(reading.values)
            self._update.series.append(dataclasses.replace(self._packer.pack(reading), replica=self.number))

    def _compare_process(self, values: Mapping[str, float]) -> None:
        """Compare the server's process with that before: an idle one has no counters that fall when it is restarted."""
        start, cpu = (values.get(name, math.nan) for name in (PROCESS_START, PROCESS_CPU))
        known_start, known_cpu = self._process
        if start > known_start + _SAME_START or cpu < known_cpu:  # False for NaN
            self._note_restart(again=self._read_since_attached)
        self._process, self._read_since_attached = (start, cpu), True

    def _note_restart(self, *, again: bool) -> None:
        """Attach again, because a restart may have changed the server; or after it was gone, say that it restarted."""
        if again:
            self._restarted.set()
        elif self._state is not ReplicaState.RESTARTED:
            self._change(ReplicaState.RESTARTED, self._reason)

    def _note_failure(self, error: EngineError | UsageError) -> None:
        known, self.failure = self.failure, error
        if self.facts is None and (known is None or str(known) != str(error)):
            state = ReplicaState.GONE if str(error).startswith(UNREACHABLE) else ReplicaState.REFUSED
            self._change(state, str(error))
            name, url = self.address.name, self.address.url
            self._update.failures.append(AttachFailure(at=self._clock.now(), name=name, url=url, text=str(error)))

    def _note_attached(self, before: EngineFacts | None, facts: EngineFacts) -> None:
        """Record that the server responds, and if it was restarted, what is different now.

        One that was gone has been restarted if something is different, or as soon as its counters show it.
        """
        changed = "" if before is None else changed_facts(before, facts)
        restarted = bool(changed) or self._restarted.is_set()
        self._change(ReplicaState.RESTARTED if restarted else ReplicaState.ATTACHED, changed)
        if before is not None:
            silent = None if self._gone_since is None else formats.clock(self._clock.now() - self._gone_since)
            again = "was restarted" if silent is None else f"responds again after {silent}"
            self._note(Severity.INFO, f"{again}{f', now with {changed}' if changed else ''}")
        self._gone_since = None

    def _note(self, severity: Severity, text: str) -> None:
        at = self._clock.now()
        self._update.notes.append(Note(at=at, severity=severity, source="engine", text=f"{self.address.name}: {text}"))

    def _change(self, state: ReplicaState, reason: str = "") -> None:
        self._state, self._reason = state, reason
        self._update.changes.append(
            ReplicaChange(
                at=self._clock.now(),
                replica=self.number,
                name=self.address.name,
                url=self.address.url,
                state=state,
                reason=reason,
                engine=facts_text(self.facts) if state.responds and self.facts is not None else None,
                not_ready=self._not_ready if state.responds and self._not_ready else None,
            )
        )


def changed_facts(before: EngineFacts, now: EngineFacts) -> str:
    """Return what is different, as in `max_num_seqs 8 instead of 16`; empty if nothing is."""
    pairs = ((name, getattr(before, name), getattr(now, name)) for name in _NAMED_FACTS)
    return ", ".join(f"{name} {new} instead of {old}" for name, old, new in pairs if old != new)


def _counts_again(before: EngineSample, now: EngineSample) -> bool:
    """Whether counters fell, so that the server was restarted: most of those that had counted, not one by itself."""
    pairs = [(getattr(before, name), getattr(now, name)) for name in COUNTERS]
    counted = [(old, new) for old, new in pairs if old and new is not None]
    return bool(counted) and 2 * sum(new < old for old, new in counted) > len(counted)
