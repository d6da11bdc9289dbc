"""A simulated engine that restarts while a search runs, as another one: what was in flight fails."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from servetop.run.search.search_evidence import Evidence, LoadObjective, Probe
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler
from tests.judgement.searched_server import SearchedServer
from tests.judgement.searched_servers import SearchedCase


class RestartingServer(SearchedServer):
    """From the first load after `since` on, its steps take `factor` times as long, and its queue is empty."""

    def __init__(self, case: SearchedCase, *, seed: int, factor: float, since: float) -> None:
        super().__init__(case.base, seed=seed, concurrency=case.concurrency)
        self._spec = case.base.spec
        self._factor, self._since = factor, since
        self.restarted_at = math.inf

    def keep(self, load: float, seconds: float) -> Probe:
        """Keep a load for a time."""
        if self.now >= self._since and math.isinf(self.restarted_at):
            self.restarted_at = self.now
            spec = dataclasses.replace(self._spec, time_scale=self._spec.time_scale * self._factor)
            self._engine = VirtualEngine(build_scheduler(spec))
        return super().keep(load, seconds)

    def evidence(self, probes: Sequence[Probe], objectives: Sequence[LoadObjective]) -> Evidence:
        """Return what a recording would hold now, of which only what followed the restart counts."""
        found = super().evidence(probes, objectives)
        failed = np.isnan(found.done) & (found.due < min(self.restarted_at, self.now))
        if math.isinf(self.restarted_at):
            return found
        earlier = tuple(each for each in probes if each.begin < self.restarted_at)
        later = tuple(dataclasses.replace(each, restarts=1) for each in probes[len(earlier) :])
        return dataclasses.replace(
            found,
            probes=later,
            done=np.where(failed, self.restarted_at, found.done),
            counted=tuple(np.where(failed, 1.0, each) for each in found.counted),
            missed=tuple(np.where(failed, 1.0, each) for each in found.missed),
            earlier=earlier,
            restarted_at=self.restarted_at,
        )
