"""The newest state of each server of a run or a watch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from servetop.analysis.engine_gauges import kv_usage
from servetop.core.events import EngineSample
from servetop.core.interfaces.replica_change import ReplicaState
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.text.redaction import Redactor
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.run.exporter import metric_registry as registry
from servetop.run.exporter.live_metric import LiveMetric, MetricFamily, MetricSample, state_set

FRESH_SECONDS = 5.0
"""Age of a sample from which its server does not respond, and its values are not exported."""


class ServerGauges:
    """Gauges by the name of the server; a server that is not listed any more has none."""

    def __init__(self, *, redactor: Redactor) -> None:
        self._redactor = redactor
        self._facts: EngineFacts | None = None
        self._at = 0.0
        self._single: EngineSample | None = None
        self._samples: dict[int, EngineSample] = {}
        self._names: dict[int, str] = {}
        self._states: dict[int, ReplicaState] = {}

    def set_engine(self, facts: EngineFacts) -> None:
        """Take the addresses of the servers."""
        self._facts = facts

    def add(self, transaction: TickTransaction) -> None:
        """Take the newest samples and states."""
        if transaction.tick is not None:
            self._at = transaction.tick.end
        if transaction.engine_samples:
            self._single = transaction.engine_samples[-1]
        self._samples.update((each.replica, each) for each in transaction.replica_samples)
        for change in transaction.replica_changes:
            self._names[change.replica], self._states[change.replica] = change.name, change.state

    @property
    def newest(self) -> Sequence[EngineSample]:
        """The newest sample of each of several servers; empty with one."""
        return [*self._samples.values()]

    def families(self) -> Iterator[MetricFamily]:
        """Return the gauges of each server, and the states of watched ones."""
        servers = dict(self._servers())
        fresh = {name: each for name, each in servers.items() if each is not None and self._is_fresh(each)}
        yield _by_server(registry.SERVER_UP, {name: int(name in fresh) for name in servers})
        yield _by_server(registry.SERVER_RUNNING, {name: each.running for name, each in fresh.items()})
        yield _by_server(registry.SERVER_WAITING, {name: each.waiting for name, each in fresh.items()})
        usages = {name: kv_usage(each) for name, each in fresh.items()}
        yield _by_server(
            registry.SERVER_KV, {name: None if math.isnan(usage) else usage for name, usage in usages.items()}
        )
        listed = {name: state for number, name in self._listed() if (state := self._states.get(number)) is not None}
        yield MetricFamily(
            metric=registry.SERVER_STATE,
            samples=[
                each
                for name, state in listed.items()
                for each in state_set(registry.SERVER_STATE, state.value, {"server": self._redactor.text(name)})
            ],
        )

    def _is_fresh(self, sample: EngineSample) -> bool:
        return self._at - sample.scrape_end <= FRESH_SECONDS

    def _listed(self) -> list[tuple[int, str]]:
        gone = ReplicaState.REMOVED
        return [(number, name) for number, name in self._names.items() if self._states[number] is not gone]

    def _servers(self) -> Iterator[tuple[str, EngineSample | None]]:
        """Return the name and the newest sample of each server."""
        urls = () if self._facts is None else self._facts.replica_urls
        if self._names:
            found = [(name, self._samples.get(number)) for number, name in self._listed()]
        elif len(urls) > 1:
            found = [(_address(url), self._samples.get(number)) for number, url in enumerate(urls)]
        else:
            url = None if self._facts is None else self._facts.url
            found = [] if url is None else [(_address(url), self._single)]
        for name, sample in found:
            yield self._redactor.text(name), sample


def _address(url: str) -> str:
    """Return host and port of a URL, as in `gpu7:8000`."""
    return url.rpartition("://")[2].partition("/")[0].rpartition("@")[2]


def _by_server(metric: LiveMetric, values: dict[str, float | None]) -> MetricFamily:
    samples = [MetricSample(value=each, labels={"server": name}) for name, each in values.items() if each is not None]
    return MetricFamily(metric=metric, samples=samples)
