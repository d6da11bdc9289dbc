"""The table of watched servers says what differs at every width."""

from __future__ import annotations

import math
from dataclasses import replace

from servetop.analysis.fleet.replica_row import ReplicaClass, ReplicaRow
from servetop.tui.state.fleet_state import FleetFrame
from servetop.tui.state.fleet_table import fleet_rows

SERVING = ReplicaRow(
    number=0, name="gpu0", url="http://gpu0", kind=ReplicaClass.SERVING, state="serving", since=math.nan,
    running=8.0, waiting=0.0, kv=0.3, preemptions=0.0, output=600.0, ttft_p90=0.2,
)  # fmt: skip
OTHER = replace(
    SERVING, number=1, name="gpu1", kind=ReplicaClass.DIFFERS, differs="max_num_seqs 8 (16 elsewhere), version 0.10.2"
)
FULL = replace(OTHER, number=2, name="gpu2", kind=ReplicaClass.SATURATED, state="KV-bound", since=19.0)


def table(width: int, *rows: ReplicaRow) -> list[str]:
    """The heading and the rows."""
    drawn = fleet_rows(FleetFrame(at=60.0, rows=rows), width, height=1 + len(rows))
    return ["".join(text for text, _ in row) for row in drawn]


def test_a_wide_table_has_what_differs_behind_the_figures() -> None:
    _, _, other = table(150, SERVING, OTHER)
    assert other.endswith("200 ms  ≠ max_num_seqs 8 (16 elsewhere), version 0.10.2")


def test_a_narrow_table_has_it_beside_the_state_and_all_figures() -> None:
    heading, serving, other, full = table(76, SERVING, OTHER, FULL)
    assert other.startswith("  gpu1    serving ≠ max_num_seqs 8…")
    assert full.startswith("  gpu2    KV-bound since 0:19 ≠ ma…")
    for row in (serving, other, full):
        assert row.endswith("200 ms")
        assert len(row) == len(heading) == 76


def test_the_mark_is_there_with_long_names_too() -> None:
    _, row = table(76, replace(FULL, name="a-server-with-a-long-name.example:8000"))
    assert "KV-bound since 0:19 ≠" in row


def test_a_narrow_table_without_differences_keeps_its_columns() -> None:
    heading, serving = table(76, SERVING)
    assert len(heading) == len(serving) == 73
    assert "≠" not in serving


def test_a_column_for_which_there_is_no_room_is_left_out_as_a_whole() -> None:
    long = replace(SERVING, name="gpu-node-17:8000", ttft_p90=0.25)
    for width in range(50, 130):
        heading, row = table(width, long)
        columns = heading.split("state")[-1].replace("TTFT p90", "TTFT").split()
        assert set(columns) <= {"run", "wait", "KV", "preempt", "tok/s", "TTFT"}, width
        assert row.endswith({"TTFT": "250 ms", "run": "8", "KV": "30.0 %"}[columns[-1]]), width
    assert [name for name in ("run", "wait", "KV", "TTFT p90") if name in table(80, long)[0]] == [
        "run", "wait", "KV", "TTFT p90",
    ]  # fmt: skip


def test_a_quantile_in_the_first_bucket_is_at_most_its_bound() -> None:
    _, row = table(120, replace(SERVING, ttft_p90=0.3, ttft_first_bound=0.3))
    assert row.endswith("≤300 ms")
