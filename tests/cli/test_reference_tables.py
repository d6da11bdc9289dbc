"""The cells of a sweep, published, measured and simulated side by side."""

from __future__ import annotations

import dataclasses

from servetop.analysis.sweep.reference_figures import PublishedSource
from servetop.analysis.sweep.sweep_cell import CellReference, SweepCell
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.cli.report.reference_tables import reference_markdown, reference_tables
from servetop.cli.tables import SanitizingConsole
from tests.analysis.sweep.sweep_grids import grid, judged

FIRST, SECOND = grid({64: "5 6"})
SOURCE = PublishedSource(source="A study, Table 1", set_up="an *engine*", mean_ratio=0.978)


def reference(rate: float | None, ratio: float | None, **more: float | bool | None) -> CellReference:
    return CellReference(output_throughput=rate, ratio=ratio, **({"preemptions": None} | more))  # type: ignore[arg-type]


def verdict(*cells: SweepCell, source: PublishedSource | None = SOURCE) -> SweepVerdict:
    return dataclasses.replace(judged(list(cells), objectives={}), published=source)


def printed(sweep: SweepVerdict) -> list[str]:
    console = SanitizingConsole(width=120, force_terminal=False)
    with console.capture() as capture:
        console.print(*reference_tables(sweep))
    return [line.rstrip() for line in capture.get().splitlines() if line.strip() and "──" not in line]


def test_each_cell_is_a_row_with_the_ratios_to_both() -> None:
    both = dataclasses.replace(FIRST, published=reference(510.0, 0.98), simulated=reference(505.0, 0.99))
    one = dataclasses.replace(SECOND, published=reference(20.0, 30.0, suspect=True))
    title, heads, names, *rows, source, suspect = printed(verdict(both, one))
    assert title == "Published, measured and simulated output tok/s"
    assert (heads.split(), names.split()) == (
        ["measured", "/", "measured", "/"],
        ["published", "measured", "simulated", "published", "simulated"],
    )
    assert [" ".join(row.split()) for row in rows] == [
        "batch 64 at 8 req/s 510 500 505 0.98 0.99",
        "batch 64 at 16 req/s 20.0 ? 600 – 30.0 –",
    ]
    assert source == "published: A study, Table 1 (an *engine*); measured / published: geometric mean 0.98"
    assert suspect.startswith("? contradicts other published cells")


def test_a_sweep_with_a_prediction_only_has_no_column_of_a_study() -> None:
    title, _, heads, row = printed(verdict(dataclasses.replace(FIRST, simulated=reference(505.0, 0.99)), source=None))
    assert title == "Measured and simulated output tok/s"
    assert heads.split() == ["measured", "simulated", "simulated"]
    assert row.split()[-3:] == ["500", "505", "0.99"]


def test_published_preemptions_are_a_table_of_their_own() -> None:
    cells = dataclasses.replace(
        FIRST, preemptions=24.0, published=reference(None, None, preemptions=26.0),
        simulated=reference(505.0, 0.99, preemptions=25),
    )  # fmt: skip
    titles = [line for line in printed(verdict(cells)) if line.startswith(("Measured", "Published"))]
    assert titles == ["Measured and simulated output tok/s", "Published, measured and simulated preemptions"]
    assert [line.split()[-3:] for line in printed(verdict(cells)) if line.startswith("batch")][1] == ["26", "24", "25"]


def test_a_sweep_without_other_figures_has_no_table() -> None:
    assert reference_tables(verdict(FIRST, source=None)) == []
    assert reference_markdown(verdict(FIRST, source=None)) == []


def test_markdown_has_the_same_rows_and_no_format_of_the_source() -> None:
    sweep = verdict(dataclasses.replace(FIRST, published=reference(510.0, 0.98)))
    assert reference_markdown(sweep) == [
        "",
        "Published and measured output tok/s",
        "",
        "|  | published | measured | measured / published |",
        "| :-- | --: | --: | --: |",
        "| batch 64 at 8 req/s | 510 | 500 | 0.98 |",
        "",
        "published: A study, Table 1 (an \\*engine\\*); measured / published: geometric mean 0.98",
    ]
