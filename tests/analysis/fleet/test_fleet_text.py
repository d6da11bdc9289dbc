"""Several servers in one line: how many serve, which do not, sums, the worst, and the skew."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from servetop.analysis.fleet.fleet_text import differences, fleet_line, skew, skew_text, totals_text
from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.core.interfaces.run_source import EngineFacts

SERVING = ReplicaRow(
    number=0, name="gpu6", url="http://gpu6", kind=ReplicaClass.SERVING, state="serving", since=math.nan,
    running=8.0, waiting=0.0, kv=0.4, preemptions=0.0, output=600.0, ttft_p90=0.2,
)  # fmt: skip
FULL = replace(
    SERVING, name="gpu7", kind=ReplicaClass.SATURATED, state="KV-bound", since=12.0, kv=0.99, waiting=31.0,
    preemptions=1.5, output=1200.0, ttft_p90=4.2,
)  # fmt: skip
DEAD = ReplicaRow(number=2, name="gpu9", url="", kind=ReplicaClass.DEAD, state="no response", since=20.0)
FACTS = EngineFacts(name="vllm", title="vLLM", version="0.11.0", model="tiny", max_num_seqs=16)


def test_the_servers_that_do_not_serve_as_they_should_are_named() -> None:
    line = fleet_line([DEAD, FULL, SERVING, replace(SERVING, name="gpu8")])
    assert line == "3 of 4 serve; gpu9 no response since 0:20; gpu7 KV-bound since 0:12"


def test_a_server_that_fails_requests_is_named() -> None:
    failing = replace(SERVING, name="gpu8", kind=ReplicaClass.FAILING, state="failing", since=14.0)
    assert fleet_line([DEAD, failing, SERVING]) == "2 of 3 serve; gpu9 no response since 0:20; gpu8 failing since 0:14"


def test_a_restart_and_a_difference_are_said() -> None:
    restarted = replace(
        SERVING, name="gpu8", kind=ReplicaClass.RESTARTED, restarted_at=65.0, differs="max_num_seqs 8 (16 elsewhere)"
    )
    assert fleet_line([restarted, SERVING]) == (
        "2 of 2 serve; gpu8 restarted at 1:05; gpu8 differs: max_num_seqs 8 (16 elsewhere)"
    )


def test_many_servers_that_are_gone_are_counted() -> None:
    rows = [replace(DEAD, name=f"gpu{number}") for number in range(9)]
    assert fleet_line(rows) == "0 of 9 serve; 9 servers: no response since 0:20 (gpu0, gpu1, gpu2 and 6 more)"


def test_many_servers_in_one_state_are_one_short_text() -> None:
    rows = [
        replace(
            SERVING, name=f"10.0.0.{number}:8000", kind=ReplicaClass.QUEUE, state="requests wait", since=5.0 + number
        )
        for number in range(50)
    ]
    assert fleet_line([DEAD, *rows]) == (
        "50 of 51 serve; gpu9 no response since 0:20; "
        "50 servers: requests wait since 0:05 (10.0.0.0:8000, 10.0.0.1:8000, 10.0.0.2:8000 and 47 more)"
    )
    other = [replace(row, kind=ReplicaClass.DIFFERS, differs="version 0.10.2 (0.11.0 elsewhere)") for row in rows[:4]]
    assert fleet_line([*other, SERVING]).endswith(
        "; 4 servers differ: version 0.10.2 (0.11.0 elsewhere) (10.0.0.0:8000, 10.0.0.1:8000, 10.0.0.2:8000 and 1 more)"
    )


def test_a_slower_server_is_named_with_the_factor() -> None:
    slow = replace(
        SERVING, kind=ReplicaClass.SLOW, state="slower than the others", since=12.0,
        slower="4.1 × their time per output token",
    )  # fmt: skip
    assert fleet_line([slow, SERVING, SERVING]) == (
        "3 of 3 serve; gpu6 slower than the others since 0:12 (4.1 × their time per output token)"
    )


def test_a_slower_server_with_another_trouble_is_named_with_both() -> None:
    slower = "2.0 × their time per output token"
    full = replace(SERVING, kind=ReplicaClass.SATURATED, state="batch-bound", since=41.0, slower=slower)
    restarted = replace(full, kind=ReplicaClass.RESTARTED, state="serving", restarted_at=63.0)
    assert fleet_line([full]) == f"1 of 1 serve; gpu6 batch-bound since 0:41, slower than the others ({slower})"
    assert fleet_line([restarted]) == f"1 of 1 serve; gpu6 restarted at 1:03, slower than the others ({slower})"


def test_a_server_that_is_not_listed_any_more_does_not_count() -> None:
    assert fleet_line([replace(DEAD, kind=ReplicaClass.REMOVED), SERVING]) == "1 of 1 serve"


def test_sums_and_the_worst_are_of_the_servers_that_respond() -> None:
    assert totals_text([DEAD, FULL, SERVING]) == (
        "out 1,800 tok/s │ running 16 │ waiting 31 │ KV ≤ 99.0 % (gpu7) │ preemptions 1.5/s │ TTFT p90 ≤ 4.20 s (gpu7)"
    )
    assert totals_text([DEAD]) == ""


def test_skew_is_the_largest_relative_to_the_mean_with_its_server_the_worst_first() -> None:
    assert skew_text([DEAD, FULL, SERVING]) == "skew waiting 2.0× (gpu7), TTFT p90 1.9× (gpu7), KV 1.4× (gpu7)"
    assert skew_text([replace(FULL, kv=math.nan, ttft_p90=math.nan), replace(SERVING, output=1800.0)]) == (
        "skew waiting 2.0× (gpu7), out 1.2× (gpu6)"
    )
    pair = [replace(SERVING, name=name, per_token=seconds) for name, seconds in (("a", 0.01), ("b", 0.03))]
    assert skew_text(pair).startswith("skew ITL 1.5× (b)"), "of two servers that is all that is known"
    assert skew_text([DEAD, SERVING]) == ""
    assert skew([3.0, 0.0, 0.0]) == pytest.approx(3.0)
    assert math.isnan(skew([1.0]))
    assert math.isnan(skew([0.0, 0.0]))


def test_a_server_that_drains_is_named_and_counts_in_sums_but_neither_serves_nor_shares_the_load() -> None:
    draining = replace(SERVING, name="gpu8", kind=ReplicaClass.DRAINING, state="draining", since=30.0, waiting=90.0)
    assert fleet_line([draining, FULL, SERVING]).startswith("2 of 3 serve; gpu8 draining since 0:30; gpu7 KV-bound")
    assert "waiting 121" in totals_text([draining, FULL, SERVING])
    assert skew_text([draining, FULL, SERVING]) == skew_text([FULL, SERVING])


def test_a_server_differs_from_most_of_them_not_from_one() -> None:
    old = replace(FACTS, version="0.10.2", max_num_seqs=8)
    assert differences({0: FACTS, 1: FACTS, 2: old}) == {
        2: "version 0.10.2 (0.11.0 elsewhere), max_num_seqs 8 (16 elsewhere)"
    }
    assert differences({0: FACTS, 1: old}) == {}, "of two nothing is usual"
    assert differences({}) == {}
    unknown = replace(FACTS, version=None)
    assert differences({0: FACTS, 1: FACTS, 2: unknown}) == {}, "what is not known is not different"
    assert differences({0: unknown, 1: unknown, 2: FACTS}) == {}
