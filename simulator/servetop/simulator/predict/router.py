"""Replicas behind a router, to compare replication with tensor parallelism (AlpaServe, BSC study)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.simulator.predict.virtual_time import Client, VirtualEngine

ROUTERS = ("round-robin", "least-loaded")


class ReplicaRouter:
    """Routes each request to one of several equal engines when it arrives."""

    def __init__(self, engines: Sequence[VirtualEngine], *, router: str = "round-robin") -> None:
        self.engines = engines
        self._least_loaded = router == "least-loaded"
        self._next = 0

    def run(self, client: Client) -> None:
        """Serve all requests of the client to the last token; each engine records its `usage`."""
        if client.feedback:
            self._run_by_iteration(client)
            return
        while (due := client.due()) < math.inf:
            for engine in self.engines:
                engine.advance(due, client)
            self._send(due, client)
        for engine in self.engines:
            engine.advance(math.inf, client)

    def _run_by_iteration(self, client: Client) -> None:
        """Advance the engine with the earliest clock, one iteration at a time: a completion may trigger a request."""
        while True:
            due = client.due()
            busy = [engine for engine in self.engines if engine.scheduler.unfinished and engine.now < due]
            if busy:
                min(busy, key=lambda engine: engine.now).step(due, client)
            elif due < math.inf:
                self._send(due, client)
            else:
                return

    def _send(self, due: float, client: Client) -> None:
        at, requests = client.send(due)
        for request in requests:
            self._choose().offer(at, (request,), client)

    def _choose(self) -> VirtualEngine:
        if self._least_loaded:
            return min(self.engines, key=lambda engine: engine.scheduler.unfinished)
        engine = self.engines[self._next % len(self.engines)]
        self._next += 1
        return engine
