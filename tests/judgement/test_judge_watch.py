"""Watches of simulated servers, and the figures about what they said."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.summary.watch_types import WatchedLimit
from tests.judgement.judge_watch import MARK, main, watch_report
from tests.judgement.kinds import KINDS, scenario
from tests.judgement.scenario import Scenario
from tests.judgement.watch_scores import Judged, WatchScore, is_right, true_limits, watch_score
from tests.judgement.watched_scenario import EVERY, WatchedScenario, watched, watched_ticks

NOTHING = Judged(right=True, onset_error=math.nan, right_now=math.nan, changes=0, alarms=math.nan)
OVERLOAD = replace(NOTHING, onset_error=0.5, right_now=1.0)
RIGHT = WatchScore(
    kind="kv overload", name="kv 0", headline="KV-bound for 0:30 of 1:00", reported_after=4.0, expected=True,
    healthy=False, clients_fail=False, watch=OVERLOAD, run=OVERLOAD,
)  # fmt: skip
CALM = WatchScore(
    kind="healthy", name="healthy 0", headline="watched for 1:00: no limit was reached", reported_after=math.nan,
    expected=False, healthy=True, clients_fail=False, watch=replace(NOTHING, alarms=0.0),
    run=replace(NOTHING, alarms=0.0),
)  # fmt: skip


@functools.cache
def drawn(kind: str, number: int) -> Scenario:
    return scenario(kind, number, seed=21)


def saying(*limits: str, seconds: float = 20.0) -> WatchedScenario:
    named = [WatchedLimit(name=each, seconds=seconds, onset=30.0) for each in limits]
    return WatchedScenario(states=(), reported=(), limits=named, headline="")


@pytest.fixture(scope="module")
def slow_client() -> Scenario:
    return drawn("client", 2)


def test_a_watch_has_one_page_a_second_and_nothing_of_a_client(slow_client: Scenario) -> None:
    run = slow_client.run
    first = next(number for number, tick in enumerate(run.ticks) if tick.engine is not None)
    found = watched_ticks(run)
    assert len(found) == len(run.ticks)
    assert found[first].engine is found[first + EVERY - 1].engine is run.ticks[first].engine
    assert found[first + EVERY].engine is run.ticks[first + EVERY].engine
    assert sum(tick.client.sent for tick in run.ticks) > 0
    assert not any(tick.client.sent or tick.gpus for tick in found)


@pytest.mark.parametrize(("kind", "limit"), [("kv", "KV-bound"), ("batch", "batch-bound"), ("rate", "requests wait")])
def test_a_watch_names_the_limit_of_an_overload(kind: str, limit: str) -> None:
    overload = drawn(kind, 4)
    found = watch_score(overload)
    assert true_limits(overload) == {limit}
    assert found.watch.right
    assert found.headline.startswith(f"{limit} for")
    assert abs(found.watch.onset_error) <= 5
    assert found.watch.right_now > 0.9
    assert 0 < found.reported_after < 15


def test_a_watch_is_silent_about_a_slow_client(slow_client: Scenario, tmp_path: Path) -> None:
    seen = watched(slow_client.run, tmp_path / "watch.servetop")
    assert not true_limits(slow_client)
    assert (list(seen.limits), list(seen.reported)) == ([], [])
    assert {state for _, state in seen.states} <= {"serving", "idle"}
    assert is_right(slow_client, seen)


def test_a_limit_for_which_no_request_waited_is_wrong(slow_client: Scenario) -> None:
    assert not is_right(slow_client, saying("batch-bound"))
    assert not is_right(slow_client, saying("requests wait"))


def test_the_limit_that_is_named_for_longest_counts() -> None:
    overload = drawn("kv", 4)
    long, short = saying("KV-bound").limits[0], saying("requests wait", seconds=3.0).limits[0]
    assert is_right(overload, replace(saying(), limits=(short, long)))
    assert not is_right(overload, replace(saying(), limits=(short,)))
    assert not is_right(overload, saying())


def test_a_healthy_server_has_no_limit() -> None:
    healthy = drawn("healthy", 1)
    assert is_right(healthy, saying())
    assert not is_right(healthy, saying("KV-bound"))


def test_the_table_has_both_judgements_and_the_misses_of_the_watch() -> None:
    wrong = replace(
        RIGHT, name="kv 1", headline="requests wait for 0:30 of 1:00", reported_after=math.nan,
        watch=replace(OVERLOAD, right=False, onset_error=6.0, right_now=0.5, changes=1),
    )  # fmt: skip
    alarm = replace(CALM, name="healthy 1", watch=replace(NOTHING, right=False, alarms=0.1))
    aborts = replace(alarm, name="aborts 0", healthy=False, clients_fail=True, run=None)
    lines = watch_report([RIGHT, wrong, CALM, alarm, aborts])
    row = (
        "| kv overload | 2 | 50.0% | 100.0% | 50.0% | 100.0% | 50.0% | 100.0% | 75.0% | 100.0% | 0.50 | 0.00 | 4.0 s |"
    )
    assert row in lines
    assert "| watch, healthy | 1 of 2 | 5.0% |" in lines
    assert "| run, healthy | 0 of 2 | 0.0% |" in lines
    assert "| watch, only clients fail | 1 of 1 | 10.0% |" in lines
    assert lines[-3:] == [
        "- kv 1: summary: requests wait for 0:30 of 1:00; onset +6.0 s; right now 50%; no episode reported",
        "- healthy 1: summary: watched for 1:00: no limit was reached; alarms 10.0% of the time",
        "- aborts 0: summary: watched for 1:00: no limit was reached; alarms 10.0% of the time",
    ]


def test_the_command_writes_the_figures_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{MARK}\n{MARK}\nafter\n")
    monkeypatch.setitem(KINDS, "client", KINDS["client"][:1])
    assert main(["--seed", "21", "--kind", "client", "--report", str(page)]) == 0
    assert "client 0 of seed 21" in capsys.readouterr().out
    assert "Seeds 21: 1 runs." in page.read_text()
    assert "| slow client | 1 | 100.0% | 100.0% |" in page.read_text()
