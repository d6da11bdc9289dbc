"""Rows of several servers: what hurts is first, and rows of one class do not jump."""

from __future__ import annotations

import math

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.analysis.fleet.row_order import REORDER_SECONDS, RowOrder


def row(number: int, kind: ReplicaClass = ReplicaClass.SERVING, *, kv: float = 0.1, ttft: float = 0.1) -> ReplicaRow:
    return ReplicaRow(
        number=number, name=f"gpu{number}", url="", kind=kind, state="", since=math.nan, kv=kv, ttft_p90=ttft
    )


def numbers(rows: list[ReplicaRow]) -> list[int]:
    return [each.number for each in rows]


def test_what_hurts_is_first_then_the_hottest_cache_then_the_highest_ttft() -> None:
    rows = [
        row(0, ReplicaClass.IDLE),
        row(1, kv=0.5, ttft=0.1),
        row(2, kv=0.5, ttft=0.9),
        row(3, kv=0.8),
        row(4, ReplicaClass.QUEUE),
        row(5, ReplicaClass.SATURATED),
        row(6, ReplicaClass.RESTARTED),
        row(7, ReplicaClass.DEAD),
        row(8, kv=math.nan, ttft=math.nan),
        row(9, ReplicaClass.DIFFERS),
        row(10, ReplicaClass.HOT),
        row(11, ReplicaClass.SLOW),
        row(12, ReplicaClass.FAILING),
    ]
    assert numbers(RowOrder().ordered(rows, 0.0)) == [7, 12, 6, 5, 4, 11, 10, 9, 3, 2, 1, 8, 0]


def test_figures_that_swing_move_no_row_for_some_seconds() -> None:
    order = RowOrder()
    assert numbers(order.ordered([row(0, kv=0.5), row(1, kv=0.4)], 0.0)) == [0, 1]
    assert numbers(order.ordered([row(0, kv=0.3), row(1, kv=0.9)], 1.0)) == [0, 1]
    assert numbers(order.ordered([row(0, kv=0.3), row(1, kv=0.9)], REORDER_SECONDS)) == [1, 0]


def test_another_class_moves_a_row_at_once_behind_those_that_had_it_before() -> None:
    order = RowOrder()
    order.ordered([row(0), row(1), row(2, ReplicaClass.SATURATED, kv=0.95)], 0.0)
    found = order.ordered(
        [row(0), row(1, ReplicaClass.SATURATED, kv=1.0), row(2, ReplicaClass.SATURATED, kv=0.95)], 1.0
    )
    assert numbers(found) == [2, 1, 0]


def test_a_server_that_joins_and_one_that_leaves_are_ordered_at_once() -> None:
    order = RowOrder()
    order.ordered([row(0), row(1)], 0.0)
    assert numbers(order.ordered([row(0), row(1), row(2, ReplicaClass.DEAD)], 1.0)) == [2, 0, 1]
    assert numbers(order.ordered([row(1), row(2)], 2.0)) == [1, 2]


def test_an_earlier_time_is_ordered_by_itself() -> None:
    order = RowOrder()
    order.ordered([row(0, kv=0.9), row(1)], 50.0)
    assert numbers(order.ordered([row(0), row(1, kv=0.9)], 20.0)) == [1, 0]
