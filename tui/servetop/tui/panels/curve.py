"""What throughput costs in latency."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.tui.drawing.scatter import Point, draw_scatter
from servetop.tui.drawing.text_runs import TextRow
from servetop.tui.panels.panel import Panel
from servetop.tui.state.run_state import Frame
from servetop.tui.state.stage_metrics import StageMetrics


class CurvePanel(Panel):
    """What throughput costs in latency: a point for each finished stage."""

    def title(self, moment: Frame) -> Sequence[TextRow]:  # noqa: ARG002
        """What is on the axes."""
        return [[("Throughput and latency ", "title"), ("output tok/s across, TTFT p90 up", "")]]

    def draw(self, moment: Frame, width: int, height: int) -> Sequence[TextRow]:
        """See `draw_scatter`."""
        points = [_point(each) for each in moment.per_stage() if each.ended and each.stage.request_rate]
        return draw_scatter(points, width, height)


def _point(figures: StageMetrics) -> Point:
    return Point(
        batch=figures.stage.max_num_seqs, rate=figures.stage.request_rate or 0.0, throughput=figures.output_rate,
        latency=figures.histograms["ttft"].percentile(90),
    )  # fmt: skip
