"""Admission policies: continuous batching, or request-level batching (static, dynamic, none)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from servetop.simulator.model.sim_request import SimSequence


class AdmissionPolicy(Protocol):
    """Decides when waiting requests may join the batch."""

    pads: bool
    """Whether the whole batch runs until its longest member finishes."""

    def opens_at(self, waiting: Sequence[SimSequence], /, *, running: int, limit: int) -> float:
        """Return when the first waiting request may be admitted; infinity: not before a running one finishes."""
        ...


class ContinuousBatching:
    """Continuous batching: a free slot is filled at the next iteration (Orca's iteration-level scheduling)."""

    pads = False

    def opens_at(self, _waiting: Sequence[SimSequence], /, *, running: int, limit: int) -> float:
        return -math.inf if running < limit else math.inf


class RequestLevelBatching:
    """Starts a batch after the previous one is finished, once it is full or its oldest request has waited `timeout` s.

    Timeout 0 starts with the requests that are waiting (static batching of a closed set of requests); a batch size of
    1 disables batching.
    """

    pads = True

    def __init__(self, *, timeout: float = 0.0) -> None:
        self.timeout = timeout

    def opens_at(self, waiting: Sequence[SimSequence], /, *, running: int, limit: int) -> float:
        """Return -infinity (now) for a full batch, else the time at which the oldest request's timeout ends."""
        if running:
            return math.inf
        return -math.inf if len(waiting) >= limit else waiting[0].arrival + self.timeout
