"""The load that arrived in a window: its rate, how much that varies by chance, and for how long it is felt.

With one nominal rate, other seeds send other numbers of requests and tokens. Below saturation an engine delivers what
arrived, so its throughput varies at least as much as the arrivals. The error of the arrivals is found by batch means of
what the requests of each slice brought, which respects bursts, equal gaps and conversations alike: it is larger than
that of the delivered tokens where long requests spread theirs over many slices.

The number of requests in an engine that serves all at once (M/G/∞) has the autocorrelation P(S' > t), where S' is the
time that a request still stays, so its correlation time is the mean of S', E[S²] / 2 E[S] of the stays S: half a stay
if all are equal, many times that of lengths with a heavy tail. Latencies follow the number in the engine. Source: Eick,
Massey and Whitt, "The physics of the M(t)/G/∞ queue", Operations Research 41 (1993).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.comparison.slices import SlicedStage
from servetop.analysis.comparison.stage_sample import StageSample
from servetop.analysis.statistics.batch_means import StandardError, standard_error
from servetop.core.arrays import FloatArray

ENGINE_LIMITED = 0.9
"""Delivered / arrived output tokens below which the engine decides the throughput: a queue takes up the arrivals."""


@dataclass(frozen=True, slots=True)
class ArrivedLoad:
    """The requests that were due in the window of a stage, and their tokens."""

    requests: int
    seconds: float
    tokens: float
    """Input and output tokens of the requests that succeeded."""

    @classmethod
    def of(cls, sample: StageSample) -> ArrivedLoad:
        """Count the requests of a window."""
        window = sample.window
        tokens = (sample.prompt_tokens + sample.output_tokens)[window][sample.ok[window]]
        return cls(requests=int(window.stop - window.start), seconds=sample.seconds, tokens=float(np.nansum(tokens)))

    @property
    def request_rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds if self.seconds > 0 else math.nan

    @property
    def token_rate(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds if self.seconds > 0 else math.nan


def correlation_time(sample: StageSample) -> float:
    """Return the time in seconds for which the number of requests in the engine is correlated; 0 if none succeeded."""
    chosen = sample.window
    stays = (sample.done_at[chosen] - sample.sent[chosen])[sample.ok[chosen]]
    total = float(np.nansum(stays))
    return float(np.nansum(stays**2)) / total / 2 if total > 0 else 0.0


def arrival_error(stage: SlicedStage, amounts: FloatArray) -> StandardError:
    """Return the relative error of what arrived per second; `amounts` are those of the chosen requests.

    0 for a closed loop, where requests arrive as the engine ends others, and where the engine limits the throughput.
    """
    sample, arrived = stage.sample, stage.sums(amounts)
    if math.isinf(sample.load.request_rate) or not arrived.sum() > 0 or _engine_limited(stage):
        return StandardError(0.0, 1.0)
    seconds = stage.seconds
    rate = float(arrived.sum() / seconds.sum())
    found = standard_error((arrived - rate * seconds) / seconds.mean())
    return StandardError(found.value / rate, found.df)


def _engine_limited(stage: SlicedStage) -> bool:
    delivered = stage.sample.counters.get("output_tokens")
    if delivered is None:
        return False
    arrived = float(np.nansum(stage.sample.output_tokens[stage.chosen]))
    return float(delivered.between(stage.edges).sum()) < ENGINE_LIMITED * arrived
