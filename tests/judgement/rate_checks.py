"""Checks what is said of the sustainable rate."""

from __future__ import annotations

from tests.judgement.known_truth import KnownTruth
from tests.judgement.statements import Statement

BOUND_TOLERANCE = 0.05
"""By which a bound may be on the wrong side of the true rate, which is known from a few random runs."""
NEARBY = (0.02, 0.05, 0.08)
"""Distances, relative, of rates whose own random runs must not contradict what is known of a rate."""


def is_about(said: Statement, truth: KnownTruth) -> bool | None:
    rate = said.number("rate")
    if truth.steady_rate > 1.1 * rate:
        return False
    return _both(keeps(truth, rate / 1.25), exceeds(truth, rate / 0.75))


def is_between(said: Statement, truth: KnownTruth) -> bool | None:
    least, most = said.number("rate") / (1 + BOUND_TOLERANCE), said.number("most") * (1 + BOUND_TOLERANCE)
    return _both(keeps(truth, least), exceeds(truth, most))


def is_at_least(said: Statement, truth: KnownTruth) -> bool | None:
    return keeps(truth, said.number("rate") / (1 + BOUND_TOLERANCE))


def is_below(said: Statement, truth: KnownTruth) -> bool | None:
    return exceeds(truth, said.number("rate") * (1 + BOUND_TOLERANCE))


def keeps(truth: KnownTruth, rate: float) -> bool | None:
    """Whether the engine sustains a rate; None if that is unknown, or if a slightly higher rate contradicts a no.

    Each rate has random arrivals and lengths of its own: one below a rate that is kept is kept as well.
    """
    found = truth.kept_at(rate)
    return None if found is False and _any(truth, rate, by=1, kept=True) else found


def exceeds(truth: KnownTruth, rate: float) -> bool | None:
    """Whether a rate is more than the engine sustains; None also if a slightly lower rate contradicts a no."""
    found = truth.kept_at(rate)
    return None if found is True and _any(truth, rate, by=-1, kept=False) else negated(found)


def _any(truth: KnownTruth, rate: float, *, by: int, kept: bool) -> bool:
    return any(truth.kept_at(rate * (1 + by * each)) is kept for each in NEARBY)


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _both(first: bool | None, second: bool | None) -> bool | None:
    if first is False or second is False:
        return False
    return None if first is None or second is None else True
