"""The notes of a run say how many rows of its dataset were used."""

from __future__ import annotations

from servetop.workload.datasets.row_counts import RowCounts
from servetop.workload.datasets.rows import SkippedRows


def test_the_counts_are_those_of_the_notes() -> None:
    skipped = SkippedRows(rows_in_pass=1200, last_position=1200)
    for _ in range(1500):
        skipped.bad("line 3")
    skipped.left_out.update({"too short": 1, "no answer": 2})
    notes = skipped.remarks()
    expected = RowCounts(skipped=1500, left_out=3, in_file=1200)
    assert RowCounts.of_notes(notes) == expected
    assert RowCounts.of_notes([*notes, *notes]) == expected  # two senders read the same file
    one = SkippedRows()
    one.bad("line 3")
    assert RowCounts.of_notes(one.remarks()) == RowCounts(skipped=1, left_out=0, in_file=None)
    assert RowCounts.of_notes(["1 requests were clipped"]) == RowCounts(skipped=0, left_out=0, in_file=None)
