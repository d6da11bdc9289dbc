"""The factors of intervals are quantiles of the errors, and the coverage counts the intervals that a run gets."""

from __future__ import annotations

import math
from random import Random

import pytest

from tests.judgement.rate_coverage import RateError, conformal, coverage_report, factors_of


def error(evidence: str = "much", *, true: float = 10.0, estimate: float | None = 10.0, **parts: object) -> RateError:
    fields = {
        "limit": "KV-bound",
        "kept": None,
        "missed": None,
        "seed": 1,
        "kind": "kv",
        "number": 0,
        "engine": "",
        **parts,
    }
    return RateError(evidence=evidence, claimed=(estimate, None), true=(true, 2 * true), **fields)  # type: ignore[arg-type]


def test_of_twenty_ratios_the_factors_are_the_extremes_rounded_outwards() -> None:
    ratios = [0.8011, *[1.0] * 18, 1.2011]
    assert conformal(ratios) == (0.80, 1.21)


def test_of_more_ratios_they_are_inner_order_statistics() -> None:
    assert conformal([0.5, *[0.91] * 19, *[1.0] * 19, *[1.08] * 19, 2.0]) == (0.91, 1.08)


def test_factors_enclose_one_even_if_all_estimates_are_wrong_in_one_direction() -> None:
    assert conformal([1.2] * 40) == (1.0, 1.2)
    assert conformal([0.8] * 40) == (0.8, 1.0)


def test_too_few_ratios_have_no_quantile() -> None:
    with pytest.raises(ValueError, match="18 ratios have no quantile of 5%"):
        conformal([1.0] * 18)


def test_nine_tenths_of_new_ratios_are_between_the_factors() -> None:
    random = Random(7)
    inside = []
    for _ in range(400):
        low, high = conformal([math.exp(random.gauss(0.0, 0.1)) for _ in range(24)])
        inside += [low <= math.exp(random.gauss(0.0, 0.1)) <= high for _ in range(20)]
    assert sum(inside) / len(inside) >= 0.90


def test_evidence_with_few_runs_has_no_factors() -> None:
    errors = [*[error(true=9.0)] * 25, *[error("little", true=12.0)] * 19]
    assert factors_of(errors, "sustainable", ["much", "little"]) == {"much": (0.9, 1.0)}


def test_an_interval_covers_what_lies_within_it_and_within_what_the_run_proved() -> None:
    factors = (0.8, 1.2)
    assert error(true=11.5).covered("sustainable", factors)
    assert not error(true=12.5).covered("sustainable", factors)
    assert not error(true=11.5, missed=11.0).covered("sustainable", factors)
    assert not error(true=8.5, kept=9.0).covered("sustainable", factors)
    assert error(estimate=None).covered("sustainable", factors) is None
    assert error().covered("knee", factors) is None


def test_the_report_counts_the_runs_that_did_not_set_the_factors() -> None:
    chosen = [error(true=9.0 + 0.1 * step) for step in range(21)]
    others = [error(true=9.5, seed=2), error(true=8.0, seed=2), error(true=11.0, seed=2, kind="ramp")]
    factors = {"sustainable": {"much": (0.9, 1.1)}, "knee": {"much": (0.9, 1.1)}}
    lines = coverage_report(chosen, others, factors)
    assert "| sustainable | much | 21 | 0.91 | 1.00 | 1.09 | 0.90 to 1.10 | 3 | 67% |" in lines
    assert "| knee | much | 0 | – | – | – | 0.90 to 1.10 | 0 | – |" in lines
    assert "| ramp | 1 | 100% | 0 | – |" in lines
