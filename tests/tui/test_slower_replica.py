"""A server of a watch that is slower than the others, with and without another trouble."""

from __future__ import annotations

import dataclasses

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.core.interfaces.replica_change import ReplicaState
from servetop.core.interfaces.run_source import RunUpdate
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.core.tick import ClientTick, Tick
from servetop.tui.state.fleet_table import fleet_rows
from tests.tui.test_fleet_state import FULL_FROM, SECONDS, change, folded, sample


def token_series(number: int, *, per_token: float) -> list[SeriesScrape]:
    """The times between tokens of one request at a time, which are longer from FULL_FROM on."""
    found, tokens = [], 0.0
    for second in range(1, SECONDS):
        tokens += 1 / (per_token if second > FULL_FROM else 0.01)
        values = {
            "vllm:inter_token_latency_seconds_sum": float(second),
            "vllm:inter_token_latency_seconds_bucket{le=+Inf}": tokens,
        }
        names = "\n".join(values) if second == 1 else None
        at = second + 0.1 * number
        found.append(SeriesScrape(at=at, names=names, numbers=pack_numbers(values.values()), replica=number))
    return found


def test_a_server_that_becomes_slower_is_named_with_how_much_live_as_later() -> None:
    samples = [
        dataclasses.replace(sample(number, second + 0.1 * number), kv_usage=0.3, waiting=0.0, running=1.0)
        for second in range(1, SECONDS)
        for number in range(3)
    ]
    changes = [change(number, 0.5, ReplicaState.ATTACHED) for number in range(3)]
    series = [row for number in range(3) for row in token_series(number, per_token=0.04 if number == 1 else 0.01)]
    later = [
        RunUpdate(
            ticks=[Tick(client=ClientTick(index=4 * second + part)) for part in range(4)],
            replica_samples=[each for each in samples if second <= each.scrape_end < second + 1],
            engine_series=[each for each in series if second <= each.at < second + 1],
            replica_changes=changes if not second else [],
        )
        for second in range(SECONDS)
    ]
    at_once = RunUpdate(
        ticks=[tick for each in later for tick in each.ticks],
        replica_samples=[row for each in later for row in each.replica_samples],
        engine_series=[row for each in later for row in each.engine_series],
        replica_changes=changes,
    )
    for state in (folded([at_once]), folded(later)):
        assert {row.kind for row in state.at(19.0).rows} == {ReplicaClass.SERVING}
        frame = state.at(25.0)
        first, *others = frame.rows
        assert (first.name, first.kind, first.state) == ("gpu1", ReplicaClass.SLOW, "slower than the others")
        assert first.detail == first.slower == "4.0 × their time per output token"
        assert {row.kind for row in others} == {ReplicaClass.SERVING}
        assert frame.verdict.bottleneck == "slower than the others"
        assert frame.line.startswith("3 of 3 serve; gpu1 slower than the others since 0:2")
        shown = ["".join(text for text, _ in row) for row in fleet_rows(frame, 200)][3]
        assert shown.startswith("  gpu1    slower since 0:2")
        assert shown.endswith("slower than the others: 4.0 × their time per output token")


def slow_with(*, running: float, waiting: float) -> ReplicaRow:
    """The row of a slower server with these requests, while each of the others has one."""
    samples = [
        dataclasses.replace(
            sample(number, second + 0.1 * number),
            kv_usage=0.3,
            running=running if number == 1 else 1.0,
            waiting=waiting if number == 1 else 0.0,
        )
        for second in range(1, SECONDS)
        for number in range(3)
    ]
    update = RunUpdate(
        ticks=[Tick(client=ClientTick(index=index)) for index in range(4 * SECONDS)],
        replica_samples=samples,
        engine_series=[row for n in range(3) for row in token_series(n, per_token=0.04 if n == 1 else 0.01)],
        replica_changes=[change(number, 0.5, ReplicaState.ATTACHED) for number in range(3)],
    )
    (row,) = (each for each in folded([update]).at(30.0).rows if each.name == "gpu1")
    return row


def test_a_slower_server_in_which_requests_wait_has_both_in_its_details() -> None:
    row = slow_with(running=1.0, waiting=30.0)
    assert row.kind is ReplicaClass.QUEUE
    assert row.detail.endswith(", slower than the others: 4.0 × their time per output token")


def test_a_server_that_is_idle_since_it_was_slower_is_idle() -> None:
    row = slow_with(running=0.0, waiting=0.0)
    assert row.kind is ReplicaClass.IDLE
    assert row.slower == ""
    assert "slower" not in row.detail
