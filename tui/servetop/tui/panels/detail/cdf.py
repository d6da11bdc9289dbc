"""Distributions of one latency or length, one curve per stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servetop.analysis.goodput import goodput_bounds, histogram_for, share_within
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing import formats
from servetop.tui.drawing.distributions import draw_cdf, draw_ridgelines, stage_swatch
from servetop.tui.drawing.formats import axis_seconds
from servetop.tui.drawing.text_runs import TextRow, joined, shortened, spread
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.stage_metrics import LENGTHS, StageMetrics

LABELS = {
    "ttft": "TTFT", "itl": "ITL", "tpot": "TPOT", "e2el": "E2EL", "input_len": "Prompt tokens",
    "output_len": "Output tokens",
}  # fmt: skip
MOST_CURVES = 6
"""The newest stages; more curves would be indistinguishable."""
_ROOM_FOR_BOTH = 64
"""Cells of width for curves and histograms side by side."""


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
        if newest and self._metric in limits:
            limit = limits[self._metric]
            share = formats.percent(share_within(newest[0].histograms[self._metric], limit))
            parts.append([(share, "strong"), (" ≤ ", ""), (f"┊{formats.seconds(limit)}", "warn")])
        if newest and self._metric == "ttft" and "ttfot" in limits:  # TTFOT has no panel of its own
            share = formats.percent(share_within(histogram_for(newest[0].histograms, "ttfot"), limits["ttfot"]))
            parts.append([("TTFOT ", ""), (share, "strong"), (f" ≤ {formats.seconds(limits['ttfot'])}", "")])
        for q in (50, 90, 99) if newest else ():
            value = newest[0].histograms[self._metric].percentile(q)
            parts.append([(f"p{q} ", ""), (self._format(value), "strong")])
        return parts

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        curves = [each.histograms[self._metric] for each in frame.per_stage()[-MOST_CURVES:]]
        limit = frame.header.config.goodput.get(self._metric)
        if width < _ROOM_FOR_BOTH:
            drawing = draw_ridgelines if frame.view.heat else draw_cdf
            return drawing(curves, width, height, limit=limit, scale=self._scale)
        left = draw_cdf(curves, width * 3 // 5, height, limit=limit, scale=self._scale)
        right = draw_ridgelines(curves, width - width * 3 // 5 - 2, height, limit=limit, scale=self._scale)
        if len(left) != len(right):
            return left
        return [spread(one, other, width=width) for one, other in zip(left, right, strict=True)]


class StageLegend(Panel):
    """The curve of each stage."""

    def title(self, frame: Frame) -> list[TextRow]:  # noqa: ARG002
        return []

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:  # noqa: ARG002
        stages = frame.per_stage()[-MOST_CURVES:]
        names = [shortened(sanitize_line(each.stage.label), 30) for each in stages]
        kept = [goodput_text(each, frame.header.config.goodput) for each in stages]
        parts: list[TextRow] = [
            [stage_swatch(number), (f" {names[number]}", "muted"), (kept[number], "strong")]
            for number in reversed(range(len(stages)))
        ]
        return [joined(parts, width=width)]


def goodput_text(stages: StageMetrics, limits: Mapping[str, float]) -> str:
    """The share of requests that meet all objectives, as a range if histograms leave one: ` goodput 15–43 %`."""
    low, high = (formats.percent(share) for share in goodput_bounds(stages.histograms, limits))
    if high == formats.UNKNOWN:
        return ""
    return f" goodput {high}" if low == high else f" goodput {low.removesuffix(' %')}–{high}"
