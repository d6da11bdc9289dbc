"""Samples of several servers: rows by server, and the samples that they stand for in their order."""

from servetop.core.events import ReplicaSample
from servetop.core.merged.merged_sample import MergedSample
from servetop.core.merged.sample_rows import SampleRow, SampleRows, last_sample


def sample(replica: int, at: float) -> ReplicaSample:
    return ReplicaSample(replica=replica, scrape_start=at, scrape_end=at, running=2.0)


ROWS: list[SampleRow] = [
    MergedSample(sample=sample(0, 10.0), count=10, before=sample(0, 0.0)),
    MergedSample(sample=sample(1, 10.0), count=5, before=sample(1, 0.0)),
    sample(0, 11.0),
    sample(1, 11.5),
]


def test_a_row_that_stands_for_several_is_made_into_its_samples() -> None:
    rows = SampleRows(ROWS)
    assert len(rows) == len(list(rows)) == 17
    assert [each.scrape_end for each in rows if each.replica == 1] == [2.0, 4.0, 6.0, 8.0, 10.0, 11.5]
    assert rows[-1] is ROWS[-1]
    assert [each.replica for each in rows[9:11]] == [0, 1]
    assert SampleRows(rows).rows is rows.rows


def test_rows_of_each_server_are_in_their_order() -> None:
    found = SampleRows(ROWS).by_replica()
    assert {number: [last_sample(row).scrape_end for row in rows] for number, rows in found.items()} == {
        0: [10.0, 11.0],
        1: [10.0, 11.5],
    }
