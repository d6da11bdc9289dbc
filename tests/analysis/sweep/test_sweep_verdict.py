"""The verdict of a grid: its best cell, what each batch size sustains, and what to try next."""

from __future__ import annotations

import dataclasses

import pytest

from servetop.analysis.diagnosis.rate_interval import RateInterval
from servetop.analysis.sweep.batch_rows import BatchRow, RowKey, RowLimit
from servetop.analysis.sweep.sweep_cell import best_cell, closest_cell
from servetop.analysis.sweep.sweep_text import sweep_headline, sweep_lines
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from tests.analysis.sweep.sweep_grids import cell, grid, judged

OVERLOADED_SMALL = {
    16: "5.5/99  1.3/18  0.7/9",
    64: "6.8/99 11.2/98  7.6/52",
    256: "7.1/99 11.0/99 17.3/97.1",
}
BEST_IN_THE_MIDDLE = {16: "5/99 1/20 1/10", 64: "7/99 14/98 9/60", 256: "7/99 9/80 4/30"}


def limit(
    batch: int | None, *, estimate: float | None, advised_batch: int | None = None, interval: RateInterval | None = None
) -> dict[RowKey, RowLimit]:
    key: RowKey = (batch, None, False, None)
    return {key: RowLimit(limit="batch-bound", estimate=estimate, interval=interval, advised_batch=advised_batch)}


def found(sweep: SweepVerdict) -> tuple[int | None, float] | None:
    return None if sweep.best is None else (sweep.best.max_num_seqs, sweep.best.load)


def advice(sweep: SweepVerdict) -> str:
    return next(line.text for line in sweep_lines(sweep) if line.advice)


def sustained(sweep: SweepVerdict) -> list[str]:
    return [row.sustainable for row in sweep.rows]


def test_the_headline_names_the_best_cell_and_what_each_batch_size_sustains() -> None:
    limits = limit(16, estimate=6.49, advised_batch=128)
    sweep = judged(grid({**OVERLOADED_SMALL, 16: "5.5/60 1.3/18 0.7/9"}), limits=limits)
    assert sweep_headline(sweep) == (
        "best within TTFT ≤ 500 ms: batch 256 at 24 req/s (17.8 req/s done, 97.1 % within the objective); "
        "sustainable: batch 16 ≈ 6.49, batch 64 16–24, batch 256 ≥ 24 req/s"
    )


def test_no_batch_size_below_one_that_is_enough_is_advised() -> None:
    limits = limit(16, estimate=6.5, advised_batch=128)
    sweep = judged(grid(OVERLOADED_SMALL), limits=limits)
    assert sweep.advised_batch is None
    assert advice(sweep) == "try a load above 24 req/s at batch 256"


def test_the_best_cell_may_be_in_the_middle_of_the_grid() -> None:
    sweep = judged(grid(BEST_IN_THE_MIDDLE))
    assert found(sweep) == (64, 16.0)
    assert sustained(sweep) == ["8–16", "16–24", "8–16"]
    assert advice(sweep) == "try loads between 16 and 24 req/s at batch 64"


def test_a_larger_batch_size_is_advised_only_beyond_the_largest_of_the_grid() -> None:
    rows = {16: "5/99 1/20 1/10", 64: "7/99 14/98 9/60"}
    limits = limit(64, estimate=17.0, advised_batch=256)
    sweep = judged(grid(rows), limits=limits)
    assert (sweep.advised_batch, sustained(sweep)) == (256, ["8–16", "≈ 17"])
    assert advice(sweep) == "try loads between 16 and 24 req/s at batch 64, or max_num_seqs 256"


def test_more_throughput_is_not_at_better_where_the_objective_is_missed() -> None:
    sweep = judged(grid({64: "8/99 15/94.9 20/80"}))
    assert found(sweep) == (64, 8.0)


def test_if_no_cell_keeps_the_objective_the_closest_is_named() -> None:
    sweep = judged(grid({16: "4/60 1/18 0.5/9", 64: "6/83.15 9/52 -"}))
    assert sweep.best is None
    assert sweep_headline(sweep) == (
        "no cell keeps TTFT ≤ 500 ms for 95 % of its requests; closest: batch 64 at 8 req/s (83.1 % of its requests); "
        "sustainable: batch 16 < 8, batch 64 < 8 req/s"
    )
    assert advice(sweep) == "try a load below 8 req/s, or an objective that an idle engine keeps"


def test_of_cells_that_are_equally_good_the_smallest_batch_size_is_the_best() -> None:
    assert found(judged(grid({64: "8/99 16/99 -", 128: "8/99 16.1/99 -", 256: "8/99 15.9/99 -"}))) == (64, 16.0)
    assert found(judged(grid({64: "8/99 15.5/99 -", 128: "8/99 16/99 -"}))) == (128, 16.0)


def test_without_objectives_the_best_cell_has_the_most_output_tokens() -> None:
    sweep = judged(grid({16: "5 6 6", 64: "7 14 15"}), objectives={}, overloaded=frozenset({1, 2, 5}))
    assert found(sweep) == (64, 24.0)
    assert sweep_headline(sweep) == (
        "highest throughput: batch 64 at 24 req/s (1,500 tok/s, 15 req/s done); "
        "sustainable: batch 16 8–16, batch 64 16–24 req/s"
    )


def test_a_sweep_over_concurrency_sustains_a_number_in_flight() -> None:
    sweep = judged(grid({None: "4/99 7/98 9/70"}, closed=True))
    assert sweep_headline(sweep) == (
        "best within TTFT ≤ 500 ms: concurrency 16 (7.14 req/s done, 98 % within the objective); "
        "sustainable 16–24 in flight"
    )
    assert advice(sweep) == "try loads between 16 and 24 in flight"


def test_a_sweep_over_the_rate_alone_has_one_row_without_a_name() -> None:
    sweep = judged(grid({None: "8/99 15/98 9/40"}), limits=limit(None, estimate=18.2))
    assert sweep_headline(sweep).endswith("sustainable ≈ 18.2 req/s")
    assert sweep_headline(sweep).startswith("best within TTFT ≤ 500 ms: 16 req/s (")


def test_a_sweep_over_the_batch_size_alone_names_the_smallest_that_is_enough() -> None:
    sweep = judged(grid({8: "- 4/30", 32: "- 15.9/97", 128: "- 16/99"}))
    assert found(sweep) == (32, 16.0)
    assert sustained(sweep) == ["< 16", "≥ 16", "≥ 16"]


@pytest.mark.parametrize(
    ("estimate", "steady", "shown"),
    [(19.0, True, "≈ 19"), (12.0, True, "16–24"), (30.0, True, "16–24"), (12.0, False, "≈ 12"), (None, True, "16–24")],
)
def test_an_estimate_never_contradicts_what_steady_cells_measured(
    estimate: float | None, steady: bool, shown: str
) -> None:
    limits = limit(64, estimate=estimate)
    sweep = judged(grid({64: "8/99 15/98 9/60"}, steady=steady), limits=limits)
    assert sustained(sweep) == [shown]


@pytest.mark.parametrize(
    ("estimate", "interval", "shown"),
    [
        (19.0, (17.1, 21.5), "≈ 19 [17.1, 21.5]"),
        (19.0, (15.2, 24.7), "≈ 19 [16, 24]"),
        (30.0, (27.0, 33.0), "16–24"),
        (19.0, None, "≈ 19"),
    ],
)
def test_the_interval_of_an_estimate_stays_within_what_was_kept_and_missed(
    estimate: float, interval: RateInterval | None, shown: str
) -> None:
    limits = limit(64, estimate=estimate, interval=interval)
    sweep = judged(grid({64: "8/99 15/98 9/60"}), limits=limits)
    assert sustained(sweep) == [shown]
    assert sweep_headline(sweep).endswith(f"sustainable batch 64 {shown} req/s")


def test_a_load_that_was_kept_only_briefly_is_said_to_be() -> None:
    limits = limit(64, estimate=12.0)
    sweep = judged(grid({64: "8/99 15/98 9/60"}, steady=False), limits=limits)
    texts = [line.text for line in sweep_lines(sweep)]
    assert "16 kept, without a steady state" in texts[1]
    assert advice(sweep) == "try longer cells from 12 req/s on at batch 64"


def test_without_a_missed_load_there_is_not_a_upper_bound_whatever_the_model_says() -> None:
    limits = limit(64, estimate=30.0)
    assert sustained(judged(grid({64: "8/99 15/98 23/97"}), limits=limits)) == ["≥ 24"]


def test_repeats_are_said_to_be_averaged_and_failed_requests_have_a_line() -> None:
    cells = [cell(64, 8.0, "7/99", repeats=3), cell(64, 16.0, "9/70", stage=3, failed=12)]
    texts = [line.text for line in sweep_lines(judged(cells))]
    assert texts[0].endswith("mean of 3 repeats of one start")
    assert "12 requests failed in batch 64 at 16 req/s" in texts


def test_a_cell_in_which_all_requests_failed_is_never_the_best() -> None:
    broken = cell(64, 8.0, "0/0", failed=40)
    assert best_cell([broken], objectives=True) is None
    assert best_cell([broken], objectives=False) is None
    assert closest_cell([broken]) is None
    assert sweep_headline(judged([broken])).startswith("no cell keeps TTFT ≤ 500 ms for 95 % of its requests; sust")


def test_many_batch_sizes_share_one_line() -> None:
    sweep = judged(grid(dict.fromkeys((8, 16, 32, 64, 128), "8/99 15/98 20/60")))
    (line,) = [line.text for line in sweep_lines(sweep) if "sustainable" in line.text]
    assert line.startswith("sustainable: batch 8 16–24, batch 16 16–24, ")


def test_the_limit_above_the_sustainable_load_is_named_after_it() -> None:
    sweep = judged(grid({64: "8/99 15/98 9/60"}), limits=limit(64, estimate=18.2))
    (line,) = [line.text for line in sweep_lines(sweep) if "sustainable" in line.text]
    assert line.endswith("; above that batch-bound")


def test_rates_with_a_concurrency_limit_are_rows_of_their_own() -> None:
    row = BatchRow(max_num_seqs=64, max_concurrency=32, closed=False, kept=8.0, steady=True, missed=None,
                   estimate=None, estimate_interval=None, limit=None, start=0.0)  # fmt: skip
    assert (row.name, row.sustainable) == ("batch 64, concurrency 32", "≥ 8")


def test_a_load_without_a_steady_state_is_not_sustained_without_a_word() -> None:
    short = [
        dataclasses.replace(each, steady=each.load < 16) for each in grid({64: "8/99 15/98 9/60", 256: "8/99 15/98"})
    ]
    assert sustained(judged(short)) == ["16–24 (not steady)", "≥ 16 (not steady)"]
    assert sustained(judged(short[:1])) == ["≥ 8"]


def test_the_doubt_about_a_steady_state_stands_behind_the_unit_and_the_objectives() -> None:
    sweep = judged([dataclasses.replace(each, steady=False) for each in grid({64: "8/99 15/98"})])
    (line,) = [line.text for line in sweep_lines(sweep) if "sustainable" in line.text]
    assert line == "batch 64: sustainable ≥ 16 req/s with TTFT ≤ 500 ms (not steady)"
