"""The measurements of one stage of one start, from which a comparison computes estimates and their errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from servetop.analysis.cells.stage_load import StageLoad
from servetop.core.arrays import BoolArray, FloatArray, IntArray
from servetop.core.histogram import LogHistogram


@dataclass(frozen=True, slots=True, eq=False)
class Cumulative:
    """A quantity that accumulates over time, known at ascending times; both arrays have shape (readings,)."""

    at: FloatArray
    total: FloatArray

    @classmethod
    def of_steps(cls, at: FloatArray, steps: FloatArray) -> Cumulative:
        """Accumulate what was added by each time."""
        return cls(at, np.cumsum(steps))

    def between(self, edges: FloatArray) -> FloatArray:
        """Return what was added between consecutive edges; shape (edges - 1,)."""
        if self.at.size < 2:
            return np.full(edges.size - 1, math.nan)
        return np.diff(np.interp(edges, self.at, self.total))


@dataclass(frozen=True, slots=True, eq=False)
class TokenGaps:
    """Inter-token latencies by tick."""

    at: FloatArray
    """Middle of each tick, ascending; shape (ticks,)."""
    histograms: Sequence[LogHistogram]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageSample:
    """One stage of one start. Request arrays have shape (requests,), in order of due time; NaN is unknown."""

    load: StageLoad
    seed: int
    start: float
    """Start of the window to compare, in seconds of the run; requests belong to it by due time."""
    until: float
    steady: bool
    """The window is a steady state."""
    reason: str = ""
    """Why it is not."""
    number: IntArray
    """Number of each request in its run."""
    due: FloatArray
    sent: FloatArray
    done_at: FloatArray
    ok: BoolArray
    latencies: Mapping[str, FloatArray]
    """Seconds by name: `ttft`, `tpot`, `e2el`, of successful requests."""
    prompt_tokens: FloatArray
    output_tokens: FloatArray
    good: BoolArray | None = None
    """Whether each request met all objectives; None without objectives."""
    counters: Mapping[str, Cumulative] = field(default_factory=dict)
    """`output_tokens`, `tokens` (with input), `preemptions`, `kv_usage` (seconds of usage), `joules`; if known."""
    gaps: TokenGaps | None = None
    price_per_hour: float | None = None
    """The price of everything that serves; None without one."""
    index: int = 0
    """Number of the stage in its run, as in the summary: from 0, with warm-ups."""

    @property
    def place(self) -> IntArray:
        """Number of each request in its stage: with equal seeds and loads, equal ones are equal requests."""
        return np.asarray(self.number - self.number.min(initial=np.iinfo(np.int64).max), dtype=np.int64)

    def completions(self, edges: FloatArray) -> FloatArray:
        """Return the successful requests between consecutive times; shape (edges - 1,).

        A request counts in proportion to the part of its stay in the system: counts of whole requests would vary with
        the waves in which a closed loop ends them, and so hide small differences.
        """
        sent, done = self.sent[self.ok], self.done_at[self.ok]
        stay = np.maximum(done - sent, 1e-9)
        reached = [float(np.clip((edge - sent) / stay, 0.0, 1.0).sum()) for edge in edges.tolist()]
        return np.diff(reached)

    @property
    def seconds(self) -> float:
        """Length of the window."""
        return self.until - self.start

    @property
    def window(self) -> slice:
        """The requests that were due in the window."""
        first, stop = np.searchsorted(self.due, [self.start, self.until])
        return slice(int(first), int(stop))
