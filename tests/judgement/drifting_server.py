"""A simulated engine that becomes slower or faster while a search runs, as one that leaks, throttles or recovers."""

from __future__ import annotations

import dataclasses

from servetop.run.search.search_evidence import Probe
from servetop.simulator.scheduling.build import build_scheduler
from tests.judgement.searched_server import SearchedServer
from tests.judgement.searched_servers import SearchedCase


class DriftingServer(SearchedServer):
    """Its steps take `factor` times as long: from `since` on, or rising evenly up to then."""

    def __init__(self, case: SearchedCase, *, seed: int, factor: float, since: float, evenly: bool = False) -> None:
        super().__init__(case.base, seed=seed, concurrency=case.concurrency)
        self._spec = case.base.spec
        self._factor, self._since, self._evenly = factor, since, evenly

    def keep(self, load: float, seconds: float) -> Probe:
        """Keep a load for a time; the speed changes between two loads only."""
        scale = self._spec.time_scale * self._slower(self.now)
        self._engine.scheduler.cost = build_scheduler(dataclasses.replace(self._spec, time_scale=scale)).cost
        return super().keep(load, seconds)

    def _slower(self, at: float) -> float:
        if self._evenly:
            return 1 + (self._factor - 1) * min(at / self._since, 1.0)
        return self._factor if at >= self._since else 1.0
