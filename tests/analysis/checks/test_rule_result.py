"""The figures that a broken rule makes worthless."""

import pytest

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.checks.rule_result import Bearing, RuleResult


@pytest.mark.parametrize(
    ("key", "bearings"),
    [
        ("p99_ttft_ms", {Bearing.FIGURES, Bearing.TAILS}),
        ("p90_ttft_ms", {Bearing.FIGURES}),
        ("steady.p99.9_itl_ms", {Bearing.FIGURES, Bearing.TAILS, Bearing.TOKENS}),
        ("request_throughput", {Bearing.FIGURES}),
        ("output_throughput", {Bearing.FIGURES, Bearing.TOKENS}),
        ("energy.joules_per_output_token", {Bearing.FIGURES, Bearing.TOKENS}),
        ("preemptions_per_request", {Bearing.FIGURES}),
        ("mean_kv_usage", {Bearing.FIGURES}),
        ("completed", set()),
        ("trust.slip_p99_ms", set()),
        ("server.max_kv_usage", set()),
    ],
)
def test_a_rule_bears_on_figures(key: str, bearings: set[Bearing]) -> None:
    assert {each for each in Bearing if each.covers(key)} == bearings


def test_the_strain_is_the_part_of_the_limit_in_use() -> None:
    def strain(bearing: Bearing, value: float | None) -> float:
        return RuleResult(name="x", state=CheckOutcome.KEPT, bearing=bearing, value=value, limit=400.0, text="").strain

    assert strain(Bearing.FIGURES, -200.0) == 0.5
    assert strain(Bearing.TAILS, 800.0) == 0.5
    assert strain(Bearing.FIGURES, None) == 0.0
