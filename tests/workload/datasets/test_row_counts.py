"""The notes of a run say how many rows of its dataset were used."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from servetop.core.events import Note, Severity
from servetop.workload.datasets.row_counts import RowCounts
from servetop.workload.datasets.rows import Remark, SkippedRows

OLDER = (
    "1,500 bad rows of the dataset were skipped; the first: line 3",
    "1 row of the dataset was left out: too short",
    "2 rows of the dataset were left out: no answer",
    "all 1,200 prompts of the dataset were sent, then again: a prefix cache finds repeated prompts",
)
"""Notes of a recording of format 1.11, as they were written then."""
COUNTED = RowCounts(skipped=1500, left_out=3, in_file=1200)


def notes(remarks: Iterable[Remark], *, source: str = "load") -> list[Note]:
    return [
        Note(
            at=1.0,
            severity=Severity.WARNING,
            source=source,
            text=each.text,
            fact=each.fact,
            subject=each.subject,
            count=each.count,
        )
        for each in remarks
    ]


def skipped_rows() -> SkippedRows:
    skipped = SkippedRows(rows_in_pass=1200, last_position=1200)
    for _ in range(1500):
        skipped.bad("line 3")
    skipped.left_out.update({"too short": 1, "no answer": 2})
    return skipped


def test_the_counts_are_those_of_the_notes_whatever_their_words() -> None:
    remarks = skipped_rows().remarks()
    assert RowCounts.of_notes(notes(remarks)) == COUNTED
    assert RowCounts.of_notes(notes([*remarks, *remarks])) == COUNTED  # two senders read the same file
    reworded = [Remark("in other words", each.fact, each.subject, each.count) for each in remarks]
    assert RowCounts.of_notes(notes(reworded)) == COUNTED


def test_one_row_is_counted_in_the_singular() -> None:
    one = SkippedRows(rows_in_pass=1, last_position=1)
    one.bad("line 3")
    remarks = one.remarks()
    assert [each.text for each in remarks] == [
        "1 bad row of the dataset was skipped; the first: line 3",
        "the one prompt of the dataset was sent, then again: a prefix cache finds repeated prompts",
    ]
    assert RowCounts.of_notes(notes(remarks)) == RowCounts(skipped=1, left_out=0, in_file=1)


@pytest.mark.parametrize("prefix", ["", "sender 0: "])
def test_the_words_of_older_recordings_are_still_understood(prefix: str) -> None:
    assert RowCounts.of_notes(notes(Remark(prefix + text) for text in OLDER)) == COUNTED


def test_other_notes_count_nothing() -> None:
    nothing = RowCounts(skipped=0, left_out=0, in_file=None)
    others = [Remark("1 requests were clipped"), Remark("new", "of a newer version", None, 3)]
    assert RowCounts.of_notes(notes(others)) == nothing
    assert RowCounts.of_notes(notes(map(Remark, OLDER), source="user")) == nothing
