"""The requests of one run's window, with a latency and the properties that may explain it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from servetop.analysis.reconciliation.adjusted_difference import MeasuredSample
from servetop.analysis.reconciliation.client_rows import ClientRows
from servetop.core.arrays import FloatArray

LOAD, PROMPT, OUTPUT, CACHED = "load", "prompt tokens", "output tokens", "cached tokens"
BATCH = "prompt tokens of a batch"
"""Of the others that were sent within a step of the engine of each one, which are prefilled together with it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowRequests:
    """The requests of one run's window whose latency is known: terms of shape (requests, terms)."""

    client: FloatArray
    """The latency that the client measured, seconds."""
    server: FloatArray | None
    """That of the server; None unless it is known of both runs."""
    weights: FloatArray
    terms: Mapping[str, FloatArray]
    rows: ClientRows
    batch: FloatArray
    """How many others were sent within a step of the engine of each one."""
    closed: bool
    """Whether both clients keep a number of requests in flight."""

    @property
    def sample(self) -> MeasuredSample:
        """What remains to be explained: the server's latencies if known, else the client's."""
        values = self.client if self.server is None else self.server
        return MeasuredSample(values=values, weights=self.weights, terms=self.terms)

    @property
    def mean(self) -> float:
        """The client's mean, seconds."""
        return float(np.average(self.client, weights=self.weights))

    @property
    def overhead(self) -> float:
        """The client's mean less the server's, seconds; NaN if the server's is unknown."""
        return math.nan if self.server is None else self.mean - self.sample.mean

    def mean_of_term(self, name: str) -> float:
        """Return the mean of the first term of this name."""
        return float(self.terms[name][:, 0].mean())
