"""Replicas behind a router: the question of AlpaServe and of the BSC study, to split a model or to copy it."""

from __future__ import annotations

import math
from collections.abc import Sequence as Items

from servetop.simulator.predict.virtual_time import Arrivals, VirtualEngine

ROUTERS = ("round-robin", "least-loaded")


class ReplicaRouter:
    """Equal engines; each request goes to one of them when it arrives."""

    def __init__(self, engines: Items[VirtualEngine], *, router: str = "round-robin") -> None:
        self.engines = engines
        self._least_loaded = router == "least-loaded"
        self._turn = 0

    def run(self, arrivals: Arrivals) -> None:
        """Serve everything that the client sends, to the last token; see each engine's ledger."""
        while (due := arrivals.due()) < math.inf:
            for engine in self.engines:
                engine.advance(due)
            at, requests = arrivals.land(due)
            for request in requests:
                self._choose().offer(at, (request,))
        for engine in self.engines:
            engine.advance(math.inf)

    def _choose(self) -> VirtualEngine:
        if self._least_loaded:
            return min(self.engines, key=lambda engine: engine.scheduler.unfinished)
        engine = self.engines[self._turn % len(self.engines)]
        self._turn += 1
        return engine
