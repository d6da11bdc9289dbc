"""The table of latencies: metrics by percentile, with the differences from the baseline."""

from __future__ import annotations

from dataclasses import dataclass

from servetop.analysis.live_stats import LiveStats, Percentiles
from servetop.core.text import formats
from servetop.tui.drawing.braille import SWATCHES
from servetop.tui.drawing.text_runs import Run, fitted
from servetop.tui.state.baseline import STYLE, Baseline

LABELS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL"}
PERCENTILE_STYLES = (("p50", "sky", "solid"), ("p90", "orange", "dashed"), ("p99", "rose", "dotted"))
"""Name, style and dash of each percentile."""
WIDE, CLOSE = 10, 9
"""Cells of a value; of one whose column's name is in the title."""
_FELT_LABELS = {
    "ttft_due": ("TTFT as felt (from due)", "TTFT as felt", "felt"),
    "ttft": ("TTFT as served (from sent)", "TTFT as served", "served"),
}
"""Names of TTFT, longest first, where the time in the client's queue makes two of it."""
_NAME, _DELTA = 6, 8
"""Cells of a metric's name, and of a difference from the baseline."""


@dataclass(frozen=True, slots=True)
class LatencyTable:
    """The columns of the table for a width in cells: a name, and a value of `wide` cells for each percentile."""

    stats: LiveStats
    width: int
    wide: int
    baseline: Baseline | None = None

    @property
    def name(self) -> int:
        """Cells of the names: more where there are two kinds of TTFT."""
        if not self.stats.waits_in_client:
            return _NAME
        return max(len(each[self.form]) for each in _FELT_LABELS.values()) + 1

    @property
    def form(self) -> int:
        """Which names of both TTFTs fit: the longest beside three values, the middle beside two, else the shortest."""
        longest, middle = (max(len(each[form]) for each in _FELT_LABELS.values()) + 1 for form in (0, 1))
        if self.baseline is not None:  # differences come before long names
            longest, middle = longest + 3 * _DELTA, middle + 2 * _DELTA
        return 0 if self.width >= longest + 3 * self.wide else 1 if self.width >= middle + 2 * self.wide else 2

    @property
    def columns(self) -> tuple[tuple[str, str, str, bool], ...]:
        """Name, style and dash of each percentile, and whether its difference is shown; the middle one gives way first.

        Next gives way the difference of the median.
        """
        compared = self.baseline is not None
        p50, _, p99 = PERCENTILE_STYLES
        every = tuple((*each, compared) for each in PERCENTILE_STYLES)
        choices = (every, ((*p50, compared), (*p99, compared)), ((*p50, False), (*p99, compared)))
        for choice in choices:
            if self.name + sum(self.wide + _DELTA * delta for *_, delta in choice) <= self.width:
                return choice
        return (*p50, False), (*p99, False)

    def above(self) -> list[Run]:
        """Return the panel's name, and those of the percentiles above them: the title starts one cell further right."""
        names = " " * self.name
        for name, _, _, compared in self.columns:
            names += f"{name:>{self.wide}}" + (f"{'Δ':>{_DELTA}}" if compared else "")
        return [("Latency", "title"), (names[len("Latency") + 1 :], "muted")]

    def header(self) -> list[Run]:
        """Return the percentiles' names above their columns, with the dash of their lines."""
        row: list[Run] = [(" " * self.name, "")]
        for column, style, dash, compared in self.columns:
            row += [("   ", ""), (SWATCHES[dash], style), (f" {column}", "muted")]
            if compared:
                row.append((f"{'Δ':>{_DELTA}}", STYLE))
        return fitted(row, self.width)

    def row(self, name: str, *, charted: bool, limit: float | None) -> list[Run]:
        """Return a metric's percentiles; those beyond `limit` (seconds) stand out."""
        percentiles = self.stats.latencies.get(name, Percentiles())
        both = self.stats.waits_in_client and name in _FELT_LABELS
        label = f"{'▸' if charted else ' '}{_FELT_LABELS[name][self.form] if both else LABELS[name]}"
        runs: list[Run] = [(f"{label:<{self.name}}", "strong" if charted else "muted")]
        if name == "itl" and self.stats.events_unsized:
            return fitted([*runs, ("tokens per event unknown", "muted")], self.width)
        for column, _, _, compared in self.columns:
            value = getattr(percentiles, column)
            style = "bad" if limit is not None and value > limit else "strong" if charted else ""
            runs.append((f"{formats.seconds(value):>{self.wide}}", style))
            if compared and self.baseline is not None:
                then = getattr(self.baseline.latencies_now[name], column)
                runs.append((f"{formats.relative(value, then):>{_DELTA}}", STYLE))
        return fitted(runs, self.width)
