"""One of several watched servers that fails requests while it responds and is ready."""

from __future__ import annotations

import dataclasses

import pytest

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.fleet.replica_row import ReplicaClass
from servetop.core.events import ReplicaSample
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState
from servetop.core.interfaces.run_source import RunUpdate
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick
from servetop.tui.state.fleet_state import FleetState
from servetop.tui.state.fleet_table import fleet_rows
from tests.tui.test_fleet_state import change, sample

SECONDS, FAILS = 60, (20.0, 40.0)


def counted(number: int, at: float) -> ReplicaSample:
    """Server 1 fails all of its two requests a second for a while, and runs none then; server 2 serves."""
    failed = 2.0 * (min(max(at, FAILS[0]), FAILS[1]) - FAILS[0]) if number == 1 else 0.0
    idle = number == 1 and FAILS[0] <= at < FAILS[1]
    return dataclasses.replace(
        sample(number, at), running=0.0 if idle else 8.0, requests_ended_total=2.0 * at, requests_failed_total=failed
    )


def watched(*, not_ready: str | None = None) -> FleetState:
    state = FleetState(keep=None)
    changes: list[ReplicaChange] = [change(number, 0.5, ReplicaState.ATTACHED) for number in (1, 2)]
    changes += [dataclasses.replace(changes[0], at=15.0, not_ready=not_ready)] if not_ready else []
    state.fold(
        RunUpdate(
            ticks=[Tick(client=ClientTick(index=index)) for index in range(round(SECONDS / TICK_SECONDS))],
            replica_samples=[counted(number, second + 0.1) for second in range(1, SECONDS) for number in (1, 2)],
            replica_changes=changes,
        )
    )
    return state


def test_it_is_failing_and_not_idle_and_is_named_first() -> None:
    fleet = watched().at(35.0)
    first, second = fleet.rows
    assert (first.name, first.kind, first.state) == ("gpu1", ReplicaClass.FAILING, "failing")
    assert first.since == pytest.approx(FAILS[0] + 1, abs=1)
    assert first.detail.startswith("100% of requests, 0 running")
    assert second.kind is ReplicaClass.SERVING
    assert fleet.verdict.bottleneck is Bottleneck.FAILING
    assert "gpu1 failing since 0:2" in fleet.line
    table = ["".join(text for text, _ in row) for row in fleet_rows(fleet, 120)]
    assert any("gpu1" in row and "failing since 0:2" in row for row in table)


def test_it_serves_again_once_nothing_fails_any_more() -> None:
    row = next(each for each in watched().at(55.0).rows if each.name == "gpu1")
    assert row.kind is ReplicaClass.SERVING
    assert row.failed_until == pytest.approx(FAILS[1], abs=1.5)


def test_one_that_drains_refuses_requests_and_is_not_failing() -> None:
    row = next(each for each in watched(not_ready="/health: HTTP 503").at(35.0).rows if each.name == "gpu1")
    assert row.kind is ReplicaClass.DRAINING
