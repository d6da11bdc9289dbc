"""Rates are checked against runs whose arrivals are random, so that one of them may contradict its neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.judgement.kinds import scenario
from tests.judgement.known_truth import KnownTruth
from tests.judgement.rate_checks import exceeds, keeps


@dataclass(frozen=True, eq=False)
class MeasuredTruth(KnownTruth):
    """An engine that sustains up to 10 requests/s, but for the runs at some rates."""

    opposite: tuple[float, ...] = field(default=())

    def kept_at(self, rate: float) -> bool | None:
        """Whether the run at this rate kept the objectives."""
        return (rate <= 10.0) is not any(abs(rate - each) < 0.01 for each in self.opposite)


def measured(*opposite: float) -> MeasuredTruth:
    return MeasuredTruth(scenario=scenario("healthy", 0, seed=11), opposite=opposite)


@pytest.mark.parametrize(
    ("rate", "opposite", "kept", "more"),
    [
        (8.0, (), True, False),
        (14.0, (), False, True),
        (8.0, (8.0,), None, True),
        (14.0, (14.0,), True, None),
        (9.9, (9.9,), False, True),
    ],
    ids=["below", "above", "missed by chance", "kept by chance", "near the limit"],
)
def test_a_run_by_chance_makes_no_statement_false(
    rate: float, opposite: tuple[float, ...], *, kept: bool | None, more: bool | None
) -> None:
    truth = measured(*opposite)
    assert keeps(truth, rate) is kept
    assert exceeds(truth, rate) is more
