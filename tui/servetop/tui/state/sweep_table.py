"""What the matrix of a sweep shows at one time: its cells, and the figures of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from servetop.analysis.sweep.cell_checks import CellOutcome
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.state.checked_cells import checked_cells, place_of
from servetop.tui.state.frame import Frame
from servetop.tui.state.sweep_cells import (
    Cell,
    Load,
    MatrixPlace,
    OtherStage,
    exact_cells,
    failed_cells,
    measured,
    others,
    planned_cells,
    rates_before,
    skipped_cells,
)
from servetop.tui.state.sweep_predictions import predicted, published_texts, publishes_preemptions
from servetop.tui.state.sweep_spreads import sweep_spreads

MatrixRow = tuple[str, int | None]
"""Settings and batch size."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepTable:
    """What the matrix shows."""

    cells: dict[MatrixPlace, Cell]
    planned: Sequence[MatrixPlace] = ()
    predictions: dict[MatrixPlace, float] = field(default_factory=dict)
    published: Mapping[MatrixPlace, str] = field(default_factory=dict)
    """The output tokens/s of a study, and the measured ones in percent of them, as in `†2,691 98%`."""
    publishes_preemptions: bool = False
    """The published figures are numbers of preemptions, each with the measured one, as in `†1,294 ▲1,310`."""
    source: str = ""
    """Where that is published."""
    failed: Set[MatrixPlace] = frozenset()
    """Cells that could not be measured."""
    skipped: Set[MatrixPlace] = frozenset()
    """Cells that are not measured because their row has ended."""
    checked: Mapping[MatrixPlace, CellOutcome] = field(default_factory=dict)
    """Whether cells keep their thresholds."""
    spreads: Mapping[MatrixPlace, str] = field(default_factory=dict)
    """Half of the 95 % interval of the output tokens/s over starts of the engine, as in `±94 of 3`."""
    one_start: bool = False
    """Whether all repeats are known to be of one start of the engine."""
    others: Sequence[OtherStage] = ()
    before: dict[MatrixPlace, float] = field(default_factory=dict)
    """The baseline's output tokens/s, which take the place of predictions."""
    metric: str = "ttft"
    """The latency below each throughput."""
    goodput_first: bool = False
    """Goodput comes before the latency if there is no room for both."""

    @classmethod
    def of(cls, frame: Frame) -> SweepTable:
        """Return the table as of the frame's time."""
        cells, baseline = exact_cells(measured(frame), frame.sweep), frame.shown_baseline
        checks, spreads = checked_cells(frame), sweep_spreads(frame)
        return cls(
            cells=cells,
            before={} if baseline is None else rates_before(cells, baseline.run),
            planned=planned_cells(frame),
            predictions=predicted(frame),
            published=published_texts(frame, cells),
            publishes_preemptions=publishes_preemptions(frame),
            source="" if frame.header.config.published is None else sanitize_line(frame.header.config.published.source),
            failed=failed_cells(frame),
            skipped=skipped_cells(frame),
            checked={} if checks is None else {place_of(cell): cell.outcome for cell in checks.cells},
            spreads=spreads.texts,
            one_start=spreads.one_start,
            others=others(frame),
            metric=frame.view.metric,
            goodput_first=frame.view.goodput,
        )

    @property
    def rows(self) -> list[MatrixRow]:
        """Settings in the order of the plan, and of each the batch sizes, ascending."""
        places = dict.fromkeys((load.settings, batch) for batch, load in (*self.planned, *self.cells))
        order = list(dict.fromkeys(settings for settings, _ in places))
        return sorted(places, key=lambda row: (order.index(row[0]), row[1] or 0))

    @property
    def loads(self) -> list[Load]:
        """Loads, ascending, without settings."""
        return sorted({replace(load, settings="") for _, load in (*self.cells, *self.planned)})

    @property
    def rows_per_batch(self) -> int:
        """Rows of a batch size if there is room: throughput, and what is below it."""
        return 1 + len(self.below)

    @property
    def below(self) -> Sequence[str]:
        """What is below each throughput, the most important first: `spread`, `latency`, `goodput`, `reference`.

        Of a published study's sweep the figures that are compared with its own come before the latencies.
        """
        goodput = any(not math.isnan(cell.goodput) for cell in self.cells.values())
        figures = ["latency", "goodput"] if goodput else ["latency"]
        reference = ["reference"] if self.predictions or self.before else []
        spread = ["spread"] if self.spreads else []
        figures = figures[::-1] if self.goodput_first else figures
        if self.published:
            return [*spread, "published", *reference, *figures]
        return [*spread, *figures, *reference]

    @property
    def height(self) -> int:
        """Rows of everything."""
        below = 1 + len(self.others) if self.others else 0
        return (1 + self.rows_per_batch * len(self.rows) + 2 if self.rows else 0) + below
