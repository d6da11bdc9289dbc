"""Several watched servers behind the interface of one: each has a task of its own, and the list may change."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Sequence

from servetop.core.clock import Clock
from servetop.core.config import RunConfig
from servetop.core.errors import EngineError
from servetop.core.events import EngineSample, GpuSample, Note, Severity
from servetop.core.interfaces.run_source import EngineFacts
from servetop.engines.metrics.sample_merge import CounterIncreases, merge_samples
from servetop.run.loop.engine_update import EngineUpdate
from servetop.run.watch.address_list import AddressList
from servetop.run.watch.addresses import WatchedAddress
from servetop.run.watch.failure_notes import FailureNotes
from servetop.run.watch.watched_replica import SAMPLE_PERIOD, WatchedReplica
from servetop.workload.request_headers import all_headers

_LAST_SCRAPE = 3.0
"""Seconds for the last reading of all servers."""


class WatchedFleet:
    """The servers of a watch; `on_facts` receives what is known about all of them when it changes."""

    dead = False
    """A watch of several servers waits for all of them, and ends by itself never."""

    def __init__(self, config: RunConfig, clock: Clock, *, on_facts: Callable[[EngineFacts], None]) -> None:
        self._config, self._clock, self._on_facts = config.engine, clock, on_facts
        self._headers = all_headers(config.workload, os.environ)
        self._list = AddressList(config, clock)
        self._replicas: dict[str, WatchedReplica] = {}
        """The servers that are listed, by address."""
        self._numbers: dict[str, int] = {}
        """Of every server that was listed once."""
        self._totals: dict[int, CounterIncreases] = {}
        """What each of them counted, so that the sum does not fall when one leaves."""
        self._left: list[WatchedReplica] = []
        """Servers that are not listed any more, and have something to record."""
        self._facts: EngineFacts | None = None
        self._notes: list[Note] = []
        self._failures, self._ending = FailureNotes(), False
        self._newest: EngineSample | None = None
        self._merged_at = 0.0
        self._rare: EngineSample | None = None
        """The sample of a server that is known through a Prometheus server, of which the last sum was made."""
        self._list_trouble = ""
        self._follower: asyncio.Task[None] | None = None

    def first_launched(self) -> None:
        """Return None: a watch starts no server."""

    async def start(self) -> EngineFacts:
        """Begin to watch; returns when the first server responds. EngineError if none does."""
        await self._list_now(await self._list.first())
        self._follower = asyncio.create_task(self._follow_list())
        pending = {asyncio.ensure_future(each.tried.wait()): each for each in self._replicas.values()}
        try:
            while pending:
                done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    del pending[task]
                if (facts := self._known_facts()) is not None:
                    self._facts = facts
                    return facts
        finally:
            for task in pending:
                task.cancel()
        raise self.death()

    def death(self) -> EngineError:
        """Return the error if no server responds: why the first one does not."""
        failures = [str(each.failure) for each in self._replicas.values() if each.failure is not None]
        if len(failures) == 1:
            return EngineError(failures[0])
        return EngineError(f"none of {len(failures)} servers can be watched; the first: {failures[0]}")

    def take_update(self) -> EngineUpdate:
        """Take what all servers added since the last call, and their sum once a second."""
        update = EngineUpdate(notes=self._notes)
        self._notes = []
        for each in (*self._left, *self._replicas.values()):
            taken = each.take()
            update.replicas.extend(taken.samples)
            update.series.extend(taken.series)
            update.changes.extend(taken.changes)
            update.notes.extend(taken.notes)
            self._failures.add(taken.failures)
        self._left = []
        update.notes.extend(self._failures.take(self._clock.now(), listed=len(self._replicas), last=self._ending))
        if update.changes and self._facts is not None and (facts := self._known_facts()) not in (None, self._facts):
            assert facts is not None
            self._facts = facts
            self._on_facts(facts)
        if self._clock.now() >= self._merged_at + SAMPLE_PERIOD and (merged := self._merged()) is not None:
            update.samples.append(merged)
        return update

    def newest_sample(self) -> EngineSample | None:
        """Return the newest sum of all servers; None while none is read."""
        return self._newest

    def newest_gpus(self) -> tuple[GpuSample, ...]:
        """Return nothing: a GPU of this machine is not known to be of one of several servers."""
        return ()

    async def final_scrape(self) -> None:
        """Read the last values of the counters of all servers at once, as far as they respond in time."""
        self._ending = True
        scrapes = [asyncio.ensure_future(each.final_scrape()) for each in self._replicas.values()]
        if scrapes:
            await asyncio.wait(scrapes, timeout=_LAST_SCRAPE)
        for each in scrapes:
            each.cancel()
        await asyncio.gather(*scrapes, return_exceptions=True)
        self._merged_at = 0.0

    async def stop(self) -> None:
        """Detach from all servers."""
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
        await asyncio.gather(self._list.close(), *(each.stop() for each in self._replicas.values()))

    close = stop

    async def _follow_list(self) -> None:
        """Add and remove servers as the list says."""
        while True:
            changed = await self._list.changed()
            if self._list.trouble != self._list_trouble:
                self._list_trouble = self._list.trouble
                if self._list_trouble:
                    self._note(Severity.WARNING, self._list_trouble)
            if changed is not None:
                await self._list_now(changed)

    async def _list_now(self, addresses: Sequence[WatchedAddress]) -> None:
        listed = {each.url: each for each in addresses}
        for url in [url for url in self._replicas if url not in listed]:
            replica = self._replicas.pop(url)
            await replica.stop(removed=True)
            self._left.append(replica)
            self._note(Severity.INFO, f"{replica.address.name}: not listed any more")
        for url, address in listed.items():
            if url not in self._replicas:
                self._add(address)
            elif self._replicas[url].address != address:
                self._replicas[url].rename(address)

    def _add(self, address: WatchedAddress) -> None:
        number = self._numbers.setdefault(address.url, len(self._numbers))
        if self._facts is not None:
            self._note(Severity.INFO, f"{address.name}: listed from now on")
        replica = WatchedReplica(number, address, self._config, clock=self._clock, headers=self._headers)
        replica.totals = self._totals.setdefault(number, replica.totals)
        self._replicas[address.url] = replica

    def _known_facts(self) -> EngineFacts | None:
        """Return the facts of most servers, with the addresses of all; None until one responds."""
        known = [each.facts for each in self._replicas.values() if each.facts is not None]
        if not known:
            return self._facts
        kinds = Counter((each.name, each.version, each.model) for each in known)
        usual = kinds.most_common(1)[0][0]
        first = next(each for each in known if (each.name, each.version, each.model) == usual)
        blocks = [each.kv_blocks_total for each in known]
        total = sum(each or 0 for each in blocks) if None not in blocks else None
        return dataclasses.replace(first, replica_urls=tuple(self._numbers), kv_blocks_total=total)

    def _merged(self) -> EngineSample | None:
        """Return the sum of the servers that were read lately; None if none was.

        A Prometheus server scrapes each server at its own time: a sum once for each scrape of one of them has one
        scrape of all the others, so that the increases from sum to sum are those of its interval.
        """
        now = self._clock.now()
        current = [each for each in self._replicas.values() if each.is_current(now)]
        fresh = [sample for each in current if (sample := each.newest) is not None]
        rare = next((each.newest for each in current if each.is_rare), None)
        if rare is not None and rare is self._rare:
            return None
        self._rare, self._newest = rare, merge_samples(fresh, list(self._totals.values())) if fresh else None
        if rare is not None and self._newest is not None:
            self._newest = dataclasses.replace(self._newest, scrape_start=rare.scrape_start, scrape_end=rare.scrape_end)
        self._merged_at = now if fresh else self._merged_at  # the first sum at once: increases count from it
        return self._newest

    def _note(self, severity: Severity, text: str) -> None:
        self._notes.append(Note(at=self._clock.now(), severity=severity, source="engine", text=text))
