"""An engine gets the user's environment, without servetop's own changes."""

from __future__ import annotations

from servetop.core.system.environment import engine_environment, limit_own_threads


def test_what_servetop_added_for_itself_does_not_reach_an_engine() -> None:
    environment = {"PATH": "/bin"}
    limit_own_threads(environment)
    assert environment["OPENBLAS_NUM_THREADS"] == "1"
    assert engine_environment(environment) == {"PATH": "/bin"}


def test_what_the_user_had_set_stays_and_reaches_the_engine() -> None:
    environment = {"OPENBLAS_NUM_THREADS": "4"}
    limit_own_threads(environment)
    assert environment == engine_environment(environment) == {"OPENBLAS_NUM_THREADS": "4"}
