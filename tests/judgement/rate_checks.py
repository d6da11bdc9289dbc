"""Checks what is said of the sustainable rate."""

from __future__ import annotations

from tests.judgement.known_truth import KnownTruth
from tests.judgement.statements import Statement

BOUND_TOLERANCE = 0.05
"""By which a bound may be on the wrong side of the true rate, which is known from a few random runs."""


def is_about(said: Statement, truth: KnownTruth) -> bool | None:
    rate = said.number("rate")
    if truth.steady_rate > 1.1 * rate:
        return False
    return _both(truth.kept_at(rate / 1.25), negated(truth.kept_at(rate / 0.75)))


def is_between(said: Statement, truth: KnownTruth) -> bool | None:
    return _both(truth.kept_at(said.number("rate") / (1 + BOUND_TOLERANCE)), _at_most_rate(said.number("most"), truth))


def is_at_least(said: Statement, truth: KnownTruth) -> bool | None:
    return truth.kept_at(said.number("rate") / (1 + BOUND_TOLERANCE))


def is_below(said: Statement, truth: KnownTruth) -> bool | None:
    return _at_most_rate(said.number("rate"), truth)


def _at_most_rate(rate: float, truth: KnownTruth) -> bool | None:
    return negated(truth.kept_at((1 + BOUND_TOLERANCE) * rate))


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _both(first: bool | None, second: bool | None) -> bool | None:
    if first is False or second is False:
        return False
    return None if first is None or second is None else True
