"""No metric is counted in the headline of a comparison without what its verdict needs."""

from __future__ import annotations

from typing import Any

import pytest

from servetop.analysis.diagnosis.observation import Observation
from servetop.reports.comparison.headline import headline
from servetop.reports.comparison.headline_clauses import HEADLINE_CLAUSES, observed_of
from tests.analysis.comparison_values import stage, value


@pytest.mark.parametrize("verdict", ["worse", "better", "no difference seen"])
@pytest.mark.parametrize("lost", [{"difference": None, "low": None, "high": None}, {"basis": None}])
def test_a_metric_without_its_evidence_is_not_named(verdict: str, lost: dict[str, Any]) -> None:
    known = stage(value("p99_ttft_ms", "worse"))
    beside = headline("B", [stage(value("p99_ttft_ms", "worse"), value("output_throughput", verdict, **lost))])
    assert beside == headline("B", [known])


def test_what_would_tell_is_known_only_with_the_error() -> None:
    unclear = value("p99_itl_ms", "cannot tell", more_seconds=60.0)
    assert "more of each would decide" in headline("B", [stage(unclear)])
    unmeasured = value("p99_itl_ms", "cannot tell", more_seconds=60.0, basis=None)
    assert headline("B", [stage(unmeasured)]) == "Cannot tell in 1 metric"


def test_stages_without_a_length_are_not_called_short() -> None:
    empty = stage(value("p99_itl_ms", "cannot tell", reason="too short", basis=None), seconds_a=0.0, seconds_b=0.0)
    assert Observation.STAGE_LENGTH not in observed_of(empty, empty.metrics[0])
    assert headline("B", [empty]) == "Cannot tell in 1 metric"


def test_every_observation_of_a_comparison_is_needed_somewhere() -> None:
    needed = {each for clause in HEADLINE_CLAUSES.values() for needs in clause.needs for each in needs}
    assert needed == {Observation.BOTH_FIGURES, Observation.ERROR, Observation.STAGE_LENGTH}
