"""What is said of the cells of a sweep that keep or miss their thresholds."""

from __future__ import annotations

from servetop.analysis.sweep.cell_checks import CellChecks, CellOutcome, CheckedCell, ThresholdCheck

KEPT, MISSED, OPEN = CellOutcome.KEPT, CellOutcome.MISSED, CellOutcome.NOT_DECIDED


def checks(*outcomes: CellOutcome, words: tuple[str, ...] = ("p99 TTFT ≤ 500 ms",)) -> CellChecks:
    cells = [
        CheckedCell(
            label=f"{number + 1} req/s",
            request_rate=number + 1.0,
            max_concurrency=None,
            max_num_seqs=None,
            stages=(number,),
            outcome=outcome,
            thresholds=(ThresholdCheck(threshold="", outcome=outcome, value=None, text=f"it is {outcome}"),),
        )
        for number, outcome in enumerate(outcomes)
    ]
    return CellChecks.of(words, words, cells)


def test_the_headline_counts_the_cells_that_keep_the_thresholds() -> None:
    assert checks(KEPT, MISSED, KEPT).headline == "2 of 3 cells keep p99 TTFT ≤ 500 ms"
    assert checks(KEPT, OPEN).headline == "1 of 2 cells keep p99 TTFT ≤ 500 ms, 1 not decided"
    assert checks(KEPT, words=("a ≤ 1", "b ≤ 2")).headline == "1 of 1 cell keeps a ≤ 1 and b ≤ 2"
    assert checks(KEPT, KEPT, words=("a", "b", "c")).headline == "2 of 2 cells keep all 3 thresholds"


def test_a_sweep_fails_by_the_first_of_the_cells_that_miss_a_threshold() -> None:
    found = checks(KEPT, MISSED, OPEN, MISSED)
    assert found.unmet == "2 of 4 cells miss p99 TTFT ≤ 500 ms: 2 req/s: it is missed (and 1 more)"
    assert checks(KEPT, MISSED, words=("a", "b")).unmet == "1 of 2 cells misses a threshold: 2 req/s: it is missed"
    assert (checks(KEPT).unmet, checks(KEPT).undecided) == ("", "")


def test_a_sweep_does_not_decide_by_the_first_of_the_cells_without_an_answer() -> None:
    text = "cannot tell whether 1 of 2 cells keep p99 TTFT ≤ 500 ms: 2 req/s: it is not decided"
    assert checks(KEPT, OPEN).undecided == text


def test_only_cells_of_which_all_stages_have_ended_are_among_the_ended_ones() -> None:
    found = checks(KEPT, MISSED, OPEN).among({0, 2})
    assert (found.kept, found.missed, found.not_decided) == (1, 0, 1)
