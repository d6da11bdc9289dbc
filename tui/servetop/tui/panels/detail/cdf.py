"""Distributions of one latency or length, one curve per stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servetop.analysis.goodput import goodput_bounds, histogram_for, share_within
from servetop.core.text import formats
from servetop.core.text.formats import axis_seconds
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.distributions import constant_value, draw_cdf, draw_constants, draw_ridgelines, stage_swatch
from servetop.tui.drawing.palette import HUES
from servetop.tui.drawing.ridgeline import Ridge
from servetop.tui.drawing.text_runs import TextRow, joined, row_width, shortened
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.stage_metrics import LENGTHS, StageMetrics

LABELS = {
    "ttft": "TTFT",
    "itl": "ITL",
    "tpot": "TPOT",
    "e2el": "E2EL",
    "input_len": "Prompt tokens",
    "output_len": "Output tokens",
}
_COUNTED = {"ttft": "first tokens", "itl": "tokens"}
"""What the histogram of a metric counts, if not the requests that ended in the stage."""
MOST_CURVES = 6
"""The newest stages; more curves would be indistinguishable."""
_WIDE = 60
"""Cells of a panel from which its title names the stage of its figures in full, and what its share counts."""
_WHOLE_TICKS = (
    "whole ticks of 250 ms; a shared one is the earlier stage's",
    "stages are cut at 250 ms ticks",
    "stage bounds ±250 ms",
)
"""How exact the figures of stages are, in the words for wide and for narrow panels."""
_SHORT = 9
"""Cells of a stage's name at the left of its ridge."""


class CdfPanel(Panel):
    """Share of requests (for ITL: tokens) at or below a latency or a length, by stage."""

    def __init__(self, metric: str) -> None:
        super().__init__(id=metric)
        self._metric = metric
        self._format = formats.count if metric in LENGTHS else formats.seconds
        self._scale = formats.count if metric in LENGTHS else axis_seconds

    def title(self, frame: Frame) -> Sequence[TextRow]:
        newest, limits = frame.per_stage()[-1:], frame.header.config.goodput
        parts: list[TextRow] = [[(LABELS[self._metric], "title")]]
        wide = self.size.width >= _WIDE
        if len(frame.per_stage()) > 1:  # the figures are of the newest
            parts[0] = _of_stage(parts[0], newest[0].stage.index + 1, wide=wide)
        if newest and self._metric in limits:
            limit = limits[self._metric]
            share = formats.percent(share_within(newest[0].histograms[self._metric], limit))
            counted = f" of {_COUNTED.get(self._metric, 'ended')}" if wide else ""
            parts.append([(share, "strong"), (f"{counted} ≤ ", ""), (f"┊{formats.seconds(limit)}", "warn")])
        if newest and self._metric == "ttft" and "ttfot" in limits:  # TTFOT has no panel of its own
            share = formats.percent(share_within(histogram_for(newest[0].histograms, "ttfot"), limits["ttfot"]))
            parts.append([("TTFOT ", ""), (share, "strong"), (f" ≤ {formats.seconds(limits['ttfot'])}", "")])
        constant = constant_value(newest[0].histograms[self._metric]) if newest and self._metric in LENGTHS else None
        if constant is not None:
            return [*parts, [("always ", ""), (self._format(constant), "strong")]]
        for q in (50, 90, 99) if newest else ():
            value = newest[0].histograms[self._metric].percentile(q)
            parts.append([(f"p{q} ", ""), (self._format(value), "strong")])
        return parts

    def subtitle(self, frame: Frame) -> TextRow:
        return whole_ticks(frame, self.size.width) if self._metric == "ttft" else []

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        stages = frame.per_stage()[-MOST_CURVES:]
        ridges = [_ridge(each, self._metric, number) for number, each in enumerate(stages)]
        constants = draw_constants(ridges, width, height, scale=self._scale) if self._metric in LENGTHS else None
        if constants is not None:
            return constants
        limit = frame.header.config.goodput.get(self._metric)
        if frame.view.curves:
            curves = [ridge.histogram for ridge in ridges]
            return draw_cdf(curves, width, height, limit=limit, scale=self._scale)
        return draw_ridgelines(ridges, width, height, limit=limit, scale=self._scale)


def whole_ticks(frame: Frame, width: int) -> TextRow:
    """Return how exact the figures of several stages are, which are sums of ticks; empty for a single stage."""
    if len(frame.per_stage()) < 2:
        return []
    return [(next((text for text in _WHOLE_TICKS if len(text) <= width - 4), ""), "muted")]


def _of_stage(label: TextRow, number: int, *, wide: bool) -> TextRow:
    """`TTFT of stage 4`, or `4: TTFT` as beside the ridges."""
    return [*label, (f" of stage {number}", "muted")] if wide else [(f"{number}: ", "muted"), *label]


def stage_name(figures: StageMetrics) -> str:
    """Return a stage's load and its number, which tells stages of the same load apart: `8 req/s · stage 5`."""
    return f"{sanitize_line(figures.stage.label)} · stage {figures.stage.index + 1}"


def _ridge(figures: StageMetrics, metric: str, number: int) -> Ridge:
    load = sanitize_line(figures.stage.label).partition(" · ")[0].replace(" req/s", "").replace(" to ", "→")
    return Ridge(
        histogram=figures.histograms[metric],
        style=HUES[number % len(HUES)],
        name=stage_name(figures),
        short=shortened(f"{figures.stage.index + 1}: {load}", _SHORT),
    )


class StageLegend(Panel):
    """The curve of each stage."""

    def title(self, frame: Frame) -> list[TextRow]:  # noqa: ARG002
        return []

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:  # noqa: ARG002
        stages, limits = list(enumerate(frame.per_stage()[-MOST_CURVES:])), frame.header.config.goodput
        known = [goodput_text(each, limits) for _, each in stages]
        parts: list[TextRow] = [[(objectives_text(limits), "muted")]] if any(known) else []
        for (number, each), kept in zip(reversed(stages), reversed(known), strict=True):
            swatch = stage_swatch(number) if frame.view.curves else ("███", stage_swatch(number)[1])
            part = [swatch, (f" {shortened(stage_name(each), 36)}", "muted"), (kept, "strong")]
            newest = number == len(stages) - 1  # it has priority over the objectives as well
            if not newest and sum(row_width(one) + 3 for one in parts) + row_width(part) > width:
                break
            parts.insert(0, part)
        return [joined(parts, width=width)]


def objectives_text(limits: Mapping[str, float]) -> str:
    """What goodput counts: `ended within TTFT ≤500 ms, E2EL ≤5.00 s`; a stage has the requests that ended during it."""
    return "ended within " + ", ".join(
        f"{metric.upper()} ≤{formats.seconds(limit)}" for metric, limit in limits.items()
    )


def goodput_text(stages: StageMetrics, limits: Mapping[str, float]) -> str:
    """The share of requests that met all objectives, and with latencies from due if it differs: ` 43.0 %, felt 12.0 %`.

    A recording without these counts has a range from the histograms: ` 15–43 %`.
    """
    served, felt = (formats.percent(share) for share in (stages.attainment.window_served, stages.attainment.window))
    if limits and served != formats.UNKNOWN:
        return f" {served}" if served == felt else f" {served}, felt {felt}"
    low, high = (formats.percent(share) for share in goodput_bounds(stages.histograms, limits))
    if high == formats.UNKNOWN:
        return ""
    return f" {high}" if low == high else f" {low.removesuffix(' %')}–{high}"
