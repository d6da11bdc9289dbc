"""Admission of waiting requests: continuous batching, or whole batches only."""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from typing import Protocol

from servetop.simulator.scheduling.sim_request import SimSequence


class Gate(Protocol):
    """Whether admission is open. `pads`: the whole batch runs until its longest member is done."""

    pads: bool

    def opens_at(self, waiting: Items[SimSequence], /, *, running: int, limit: int) -> float:
        """The earliest instant at which the queue's head may be admitted (infinity: not before a finish)."""
        ...


class Always:
    """Continuous batching: a free slot is filled at the next iteration (Orca's iteration-level scheduling)."""

    pads = False

    def opens_at(self, _waiting: Items[SimSequence], /, *, running: int, limit: int) -> float:
        return -math.inf if running < limit else math.inf


class WholeBatch:
    """Request-level batching: a batch starts when the one before is done and it is full, or its oldest request
    has waited for `timeout` seconds. 0: start with whatever waits (static batching over a closed set of requests);
    a batch of 1: no batching.
    """

    pads = True

    def __init__(self, *, timeout: float = 0.0) -> None:
        self.timeout = timeout

    def opens_at(self, waiting: Items[SimSequence], /, *, running: int, limit: int) -> float:
        """Open now if the batch is full, else when the oldest request has waited long enough."""
        if running:
            return math.inf
        return -math.inf if len(waiting) >= limit else waiting[0].arrival + self.timeout
