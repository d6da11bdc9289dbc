"""The cells of a sweep, and which of them is the best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from servetop.analysis.field_metadata import OMITTED, PARSED, RATE
from servetop.analysis.sweep.start_mean import repeats_text
from servetop.core.config_values.cell_settings import settings_label

TIED = 0.01
"""Relative difference up to which two cells count as equally good."""


class Scored(Protocol):
    """The figures by which cells are ranked."""

    @property
    def max_num_seqs(self) -> int | None:
        """Batch size limit; None if unknown."""
        ...

    @property
    def output_throughput(self) -> float | None:
        """Output tokens/s."""
        ...

    @property
    def request_goodput(self) -> float | None:
        """Requests/s that met every objective; None without objectives."""
        ...

    @property
    def kept(self) -> bool | None:
        """Whether enough requests met every objective; None without objectives, or if no request ended."""
        ...


Interval = tuple[float, float]
"""Both ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellIntervals:
    """Where the means over starts lie with a probability of 95 %, by Student's t; None for a figure without one."""

    request_throughput: Interval | None
    output_throughput: Interval | None
    request_goodput: Interval | None
    p99_ttft_ms: Interval | None
    p99_itl_ms: Interval | None
    p99_tpot_ms: Interval | None
    p99_e2el_ms: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReference:
    """Figures of a cell that were simulated, or published by a study."""

    output_throughput: float | None
    """Tokens/s."""
    preemptions: float | None
    ratio: float | None
    """Measured / this output throughput; None if either is unknown or this one is 0."""
    suspect: bool | None = field(default=None, metadata=OMITTED)
    """True for published figures that contradict those of other cells, or the offered load; None for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCell:
    """One batch size at one load, measured by one stage or by several repeats.

    Its figures are means over the starts of the engine, of each start the mean of its repeats.
    """

    max_num_seqs: int | None
    request_rate: float | None = field(metadata=RATE)
    """Requests/s; inf in a closed loop."""
    max_concurrency: int | None
    stages: tuple[int, ...]
    """The stages that measured it as a whole, in order of time."""
    start: float
    """When the first of them began, seconds."""
    request_throughput: float | None
    output_throughput: float | None
    request_goodput: float | None
    """Requests/s that met every objective; None without objectives."""
    share_within: float | None
    """Fraction of the requests of all repeats that met every objective, without cancelled ones."""
    kept: bool | None
    """Whether that fraction is large enough; None without objectives, or if no request ended."""
    steady: bool
    """Whether all repeats had a steady window."""
    failed: int
    """Failed requests of all repeats."""
    preemptions: float | None
    p99_ttft_ms: float | None
    """99th percentiles are means too."""
    p99_itl_ms: float | None
    p99_tpot_ms: float | None
    p99_e2el_ms: float | None
    settings: str | None = field(default=None, metadata=OMITTED | PARSED)
    """What it sets besides batch size and load, by name; None without any."""
    starts: int = 1
    """Starts of the engine with which its repeats were measured."""
    intervals: CellIntervals | None = field(default=None, metadata=OMITTED)
    """None for one start: its repeats do not tell how starts differ."""
    published: CellReference | None = field(default=None, metadata=OMITTED)
    """What a study published of this cell; None if the sweep has no such figures."""
    simulated: CellReference | None = field(default=None, metadata=OMITTED)
    """What the simulator predicted before the sweep; None without a prediction."""

    @property
    def mean_of(self) -> str:
        """What its figures are means of, such as `of 3 starts` or `of 3 repeats of one start`; empty for one stage."""
        return repeats_text(len(self.stages), self.starts) if len(self.stages) > 1 else ""

    @property
    def closed(self) -> bool:
        """Whether it is a closed loop, whose load is its concurrency."""
        return self.request_rate is None or math.isinf(self.request_rate)

    @property
    def load(self) -> float:
        """Requests/s, in a closed loop the concurrency; inf without a limit."""
        if self.request_rate is not None and not self.closed:
            return self.request_rate
        return math.inf if self.max_concurrency is None else float(self.max_concurrency)

    @property
    def name(self) -> str:
        """The cell in words, such as `batch 256 at 24 req/s`."""
        rate = "" if self.closed else f"{self.load:g} req/s"
        limit = "" if self.max_concurrency is None else f"concurrency {self.max_concurrency}"
        load = ", ".join(part for part in (rate, limit) if part) or "full speed"
        batch = "" if self.max_num_seqs is None else f"batch {self.max_num_seqs}"
        where = ", ".join(filter(None, (settings_label(self.settings), batch)))
        return f"{where} at {load}" if where else load


_Cell = TypeVar("_Cell", bound=Scored)


def best_cell(cells: Iterable[_Cell], *, objectives: bool) -> _Cell | None:
    """Return the cell with the highest goodput of those that keep the objectives; None if none does.

    Without objectives it is the one with the highest output throughput. Of cells within TIED of the best one, that with
    the smallest batch size is returned.
    """
    scores = [(_score(each, objectives), each) for each in cells if each.kept or not objectives]
    highest = max((score for score, _ in scores), default=0.0)
    if highest <= 0:
        return None
    tied = [(score, each) for score, each in scores if score >= (1 - TIED) * highest]
    return min(tied, key=lambda pair: (pair[1].max_num_seqs or 0, -pair[0]))[1]


def closest_cell(cells: Sequence[SweepCell]) -> SweepCell | None:
    """Return the cell with the largest share within the objectives; None if no share is known or all are 0."""
    known = [each for each in cells if each.share_within]
    return max(known, key=lambda each: (each.share_within or 0.0, each.request_goodput or 0.0), default=None)


def _score(cell: Scored, objectives: bool) -> float:
    return (cell.request_goodput if objectives else cell.output_throughput) or 0.0
