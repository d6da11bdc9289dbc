"""The sequential test keeps its error rate over all looks, and answers as soon as the differences allow."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest

from servetop.analysis.comparison.compared_metrics import Scale
from servetop.analysis.comparison.sequential import (
    DifferenceLimits,
    evidence,
    interval,
    looks,
    next_look,
    pairs_needed,
    part_of_look,
    sequential_verdicts,
    spent,
)
from servetop.analysis.comparison.verdicts import Verdict

TWO = DifferenceLimits.of(2.0, Scale.ABSOLUTE)
"""A margin of 2 in the unit of the differences."""


def verdict(*differences: float, higher_is_better: bool = True) -> Verdict:
    return sequential_verdicts([evidence(differences, TWO)], higher_is_better=[higher_is_better])[0]


def test_looks_grow_by_a_third_or_a_half() -> None:
    assert list(looks(48)) == [3, 4, 6, 8, 12, 16, 24, 32, 48]
    assert [next_look(pairs) for pairs in (0, 1, 2, 3, 4, 5, 6, 100)] == [3, 3, 3, 4, 6, 6, 8, 128]


def test_all_looks_together_spend_the_error_rate_once() -> None:
    assert spent(8) == 0.5
    assert sum(part_of_look(look) for look in looks(8)) == pytest.approx(0.5)
    assert 0.99 < sum(part_of_look(look) for look in looks(1000)) < 1


def test_a_p_value_is_that_of_students_t_divided_by_the_part_of_its_look() -> None:
    wide = math.sqrt(3)  # of 0, 2, 0 and 2 times this: mean wide, standard error 1
    differences = [1 + 3.182 - wide + each * wide for each in (0, 2, 0, 2)]  # 3.182 errors above half the margin
    found = evidence(differences, TWO)
    assert found.rises == pytest.approx(0.025 / part_of_look(4), rel=1e-3)
    assert found.differs == pytest.approx(2 * found.rises)


def test_evidence_grows_with_pairs_that_agree() -> None:
    differences = [4.0, 3.5, 4.5, 4.2, 3.8, 4.1, 3.9, 4.0]
    found = [evidence(differences[:pairs], TWO, within=0.3).rises for pairs in (3, 4, 6, 8)]
    assert all(later < earlier / 2 for earlier, later in itertools.pairwise(found))


def test_evidence_of_an_earlier_look_stays() -> None:
    early = evidence([5.0, 5.1, 4.9], TWO)
    assert evidence([5.0, 5.1, 4.9, -40.0], TWO).rises == early.rises


def test_a_difference_beyond_half_the_margin_is_better_or_worse() -> None:
    assert verdict(4.0, 4.1, 3.9, 4.0) is Verdict.BETTER
    assert verdict(4.0, 4.1, 3.9, 4.0, higher_is_better=False) is Verdict.WORSE
    assert verdict(-4.0, -4.1, -3.9, -4.0) is Verdict.WORSE


def test_a_small_difference_is_not_seen_and_a_noisy_one_cannot_be_told() -> None:
    assert verdict(0.3, 0.2, 0.3, 0.2) is Verdict.NO_DIFFERENCE
    assert verdict(4.0, -3.0, 5.0, -2.0) is Verdict.CANNOT_TELL
    assert verdict(4.0) is Verdict.CANNOT_TELL


def test_equal_measurements_answer_at_the_first_look() -> None:
    assert verdict(0.0, 0.0, 0.0) is Verdict.NO_DIFFERENCE
    assert verdict(3.0, 3.0, 3.0) is Verdict.BETTER


def test_pairs_that_agree_by_chance_are_as_uncertain_as_the_runs_vary() -> None:
    differences = [1.7, 1.7, 1.7]
    assert evidence(differences, TWO).rises == 0.0
    assert evidence(differences, TWO, within=1.0).rises > 0.5
    assert evidence([3.0, 1.0, 2.0], TWO, within=0.5) == evidence([3.0, 1.0, 2.0], TWO)
    low, high = interval(differences, within=1.0)
    assert high - low > 1


def test_more_metrics_need_more_evidence() -> None:
    found = evidence([2.6, 2.3, 2.5, 2.7], TWO)
    assert 0.05 / 40 < found.differs < 0.05
    noise = evidence([9.0, -9.0, 9.0, -9.0], TWO)
    assert sequential_verdicts([found], higher_is_better=[True]) == [Verdict.BETTER]
    assert sequential_verdicts([found, *[noise] * 39], higher_is_better=[True] * 40)[0] is Verdict.CANNOT_TELL


def test_the_interval_is_that_of_the_last_look() -> None:
    assert interval([1.0]) == (-math.inf, math.inf)
    four = interval([1.0, 1.2, 0.8, 1.0])
    assert four[0] < 1 < four[1]
    assert interval([1.0, 1.2, 0.8, 1.0, 50.0]) == four


def test_limits_of_relative_differences_are_logarithms() -> None:
    limits = DifferenceLimits.of(0.1, Scale.RELATIVE)
    assert (limits.low, limits.half_low) == pytest.approx((math.log(0.9), math.log(0.95)))
    assert (limits.half_high, limits.high) == pytest.approx((math.log(1.05), math.log(1.1)))
    assert DifferenceLimits.of(2.5, Scale.RELATIVE).low == -math.inf


def test_noise_and_metrics_need_more_pairs() -> None:
    spreads = [pairs_needed(spread, 0.5) for spread in (0.0, 0.1, 0.2, 0.4, 0.8)]
    known = [each for each in spreads if each is not None]
    assert len(known) == len(spreads)
    assert known[0] == 3
    assert all(first < second for first, second in itertools.pairwise(known))
    assert (pairs_needed(0.1, 0.5, power=0.5) or 0) < known[1]
    assert (pairs_needed(0.3, 0.5, tests=10) or 0) > (pairs_needed(0.3, 0.5) or 0)
    assert (pairs_needed(0.3, 0.5, measured=3) or 0) > (pairs_needed(0.3, 0.5, measured=30) or 0)
    assert pairs_needed(0.1, 0.0) is None


@pytest.mark.parametrize(("true", "wrong"), [(1.0, Verdict.BETTER), (2.0, Verdict.NO_DIFFERENCE)])
def test_wrong_verdicts_at_both_limits_are_rarer_than_the_error_rate(true: float, wrong: Verdict) -> None:
    random = Random(7)
    found = [verdict(*(random.gauss(true, 1.0) for _ in range(16))) for _ in range(200)]
    assert found.count(wrong) <= 10
    assert found.count(Verdict.CANNOT_TELL) < 150
