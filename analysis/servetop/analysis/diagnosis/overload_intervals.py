"""Where the sustainable rate and the knee of an overload lie, by how far such estimates were off in simulated runs.

The factors of an estimate are those of runs with as much evidence (`rate_factors.py`). What the run itself proved
narrows the interval: a stage that was kept at a lower rate, and one that began an overload at a higher one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from servetop.analysis.diagnosis.capacity import BURSTY, KEPT_SHARE, largest_variability
from servetop.analysis.diagnosis.claimed_rates import ClaimedRates
from servetop.analysis.diagnosis.kept_load import MIN_SECONDS, kept_rate, share_kept, work_error
from servetop.analysis.diagnosis.overload import Overload
from servetop.analysis.diagnosis.overload_rates import holds_too_few
from servetop.analysis.diagnosis.rate_factors import KNEE, SUSTAINABLE
from servetop.analysis.diagnosis.rate_interval import RateInterval, nearly_certain, scaled, within
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.trailing import ticks_of

_KNOWN = 0.05
"""Standard error of the work of the completed requests, relative, up to which the capacity is well known."""


class RateEvidence(StrEnum):
    """How much an overload tells about the rates of its engine."""

    MUCH = "work known within 5 %"
    """Many requests completed, or ones of similar lengths."""
    LITTLE = "work less known"
    BURSTY = "bursty arrivals"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadIntervals:
    """Where the rates of an overload lie, with a probability of 90 % unless said; None without an estimate."""

    sustainable: RateInterval | None = None
    sustainable_range: RateInterval | None = None
    """Where the sustainable rate lies with a probability of 99 %."""
    knee: RateInterval | None = None


def overload_intervals(rates: ClaimedRates, main: Overload, run: RunRecord) -> OverloadIntervals:
    """Return the intervals of the rates that an overload claims; none of a lower bound.

    The errors are known of runs with one objective, on TTFT: by others, or without any, the sustainable rate has none.
    """
    if rates.is_lower_bound:
        return OverloadIntervals()
    held_elsewhere = holds_too_few(run, main)  # what it kept is then that of another engine
    kept, missed = None if held_elsewhere else kept_rate(run, at=main.begin), missed_rate(main, run)
    known = evidence(main, run).value
    factors = SUSTAINABLE.get(known) if _is_measured(run) else None
    surely = None if factors is None else nearly_certain(factors)
    return OverloadIntervals(
        sustainable=within(scaled(rates.sustainable, factors), rates.sustainable, kept, missed),
        sustainable_range=within(scaled(rates.sustainable, surely), rates.sustainable, kept, missed),
        knee=within(scaled(rates.knee, KNEE.get(known)), rates.knee, kept, None),
    )


def sustainable_interval(rate: float | None, main: Overload, run: RunRecord) -> RateInterval | None:
    """Return the interval of an estimated sustainable rate by its evidence alone; None without either."""
    return scaled(rate, SUSTAINABLE.get(evidence(main, run).value))


def evidence(main: Overload, run: RunRecord) -> RateEvidence:
    """Return how much an overload tells about the rates of its engine."""
    if largest_variability(run.header.config) > BURSTY:
        return RateEvidence.BURSTY
    until = run.until if main.end is None else main.end
    first = run.history.first_from(main.begin)
    stop = max(first, run.history.up_to(until))
    completed = float(run.history.column("ok", start=first, stop=stop).sum())
    known = completed > 0 and work_error(run, first, stop, completed) <= _KNOWN
    return RateEvidence.MUCH if known else RateEvidence.LITTLE


def _is_measured(run: RunRecord) -> bool:
    return run.header.config.goodput.keys() == {"ttft"}


def missed_rate(main: Overload, run: RunRecord) -> float | None:
    """Return the constant rate at which an overload began and the objectives were missed for MIN_SECONDS.

    Requests/s; None if the rate changed before, if the overload was shorter, ended before half of its load, or
    if none was missed.
    """
    until = run.until if main.end is None else main.end
    if _was_served_later(main, run):
        return None
    first, stop = run.history.first_from(main.begin), run.history.up_to(until)
    early = run.history.column("request_rate", start=first, stop=max(first, min(stop, first + ticks_of(MIN_SECONDS))))
    if early.size < ticks_of(MIN_SECONDS) or not math.isfinite(early[0]) or (early != early[0]).any():
        return None
    return float(early[0]) if share_kept(run, first, stop) < KEPT_SHARE else None


def _was_served_later(main: Overload, run: RunRecord) -> bool:
    """Whether the rate at which an overload ended stayed the same for longer than it lasted, as after a cold start."""
    if main.end is None:
        return False
    needed = ticks_of(max(MIN_SECONDS, main.end - main.begin))
    first = run.history.first_from(main.end)
    rates = run.history.column("request_rate", start=first, stop=first + needed)
    return rates.size >= needed and bool((rates == rates[0]).all())
