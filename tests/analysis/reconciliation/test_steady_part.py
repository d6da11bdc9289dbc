"""The window of a run begins after its first requests have ended, and ends with the last one sent."""

from __future__ import annotations

import dataclasses

from servetop.analysis.reconciliation.steady_part import steady_parts, typical_e2el
from tests.analysis.reconciliation.synthetic_runs import PlantedRun, planted


def test_the_windows_of_two_runs_leave_out_beginning_and_end() -> None:
    rows = [planted(PlantedRun(seed=seed)).rows for seed in (1, 2)]
    settling = typical_e2el(*rows)
    for each, part in zip(rows, steady_parts(*rows), strict=True):
        assert not part.whole
        assert (part.start, part.end) == (each.sent[0] + settling, each.sent[-1])
        assert 0 < (~part.sent_within(each)).sum() < 30
        assert 0 < (~part.ended_within(each)).sum() < 40


def test_short_runs_and_runs_without_times_count_as_a_whole() -> None:
    long, short = planted(PlantedRun(seed=1)).rows, planted(PlantedRun(seed=2, count=25)).rows
    for pair in ((long, short), (dataclasses.replace(long, times_known=False), long)):
        for rows, part in zip(pair, steady_parts(*pair), strict=True):
            assert part.whole
            assert part.sent_within(rows).all()
            assert part.ended_within(rows).all()
