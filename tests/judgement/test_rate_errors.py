"""The factors in the code are those that the recorded errors of estimates give."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judgement.constant_rates import TOLERANCE
from tests.judgement.kinds import scenario
from tests.judgement.rate_coverage import RateError
from tests.judgement.rate_errors import (
    CHECKING,
    FACTORS,
    MARK,
    SETTING,
    measured,
    rate_errors,
    read_table,
)
from tests.judgement.scenario import Scenario

PAGE = Path(__file__).parents[2] / "docs" / "judgement.md"


def test_factors_and_page_are_those_of_the_recorded_errors() -> None:
    factors, lines = measured(read_table())
    assert FACTORS.read_text(encoding="utf-8") == factors
    assert "\n".join(lines) in PAGE.read_text(encoding="utf-8").split(MARK)[1]


def test_the_errors_are_those_of_seeds_that_set_the_factors_and_of_others() -> None:
    table = read_table()
    assert {each.seed for each in table} == {*SETTING, *CHECKING}
    assert not set(SETTING) & set(CHECKING)
    names = [(each.seed, each.kind, each.number) for each in table]
    assert len(names) == len(set(names))


@pytest.fixture(scope="module")
def recorded() -> RateError:
    """A run whose true rate is found quickly."""
    return next(each for each in read_table() if each.kind == "batch")


@pytest.fixture(scope="module")
def drawn(recorded: RateError) -> Scenario:
    return scenario(recorded.kind, recorded.number, seed=recorded.seed)


def test_recorded_true_rates_are_those_of_the_simulator(recorded: RateError, drawn: Scenario) -> None:
    (found,) = rate_errors([drawn], {})
    assert (found.seed, found.kind, found.number) == (recorded.seed, recorded.kind, recorded.number)
    assert found.engine == recorded.engine
    assert found.true == pytest.approx(recorded.true, rel=TOLERANCE)


def test_known_true_rates_are_not_computed_again(recorded: RateError, drawn: Scenario) -> None:
    (found,) = rate_errors([drawn], {recorded.engine: (1.0, 2.0)})
    assert found.true == (1.0, 2.0)


def test_a_run_without_an_estimate_has_no_error() -> None:
    assert list(rate_errors([scenario("healthy", 0, seed=SETTING[0])], {})) == []
