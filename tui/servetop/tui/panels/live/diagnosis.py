"""One line: what limits throughput now, and what to try."""

from __future__ import annotations

from servetop.analysis.verdicts.diagnosis import Bottleneck, Diagnosis, diagnose
from servetop.core.errors import ExitCode
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, row_width
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame

_STYLES = {Bottleneck.HEADROOM: ("✓", "good"), Bottleneck.IDLE: ("·", "muted"), Bottleneck.UNCLEAR: ("?", "muted")}
"""Symbol and style; all other limits are warnings."""


class DiagnosisLine(Panel):
    """One row without a frame."""

    def title(self, frame: Frame) -> list[TextRow]:  # noqa: ARG002
        return []

    def draw(self, frame: Frame, width: int, height: int) -> list[TextRow]:  # noqa: ARG002
        if frame.end is not None and frame.end.exit_code == ExitCode.ENGINE_FAILED and frame.pointed is None:
            return [fitted([("✖ the engine failed: its last seconds do not show what limits it", "muted")], width)]
        return [draw_diagnosis(diagnose(frame.pointed or frame.stats, frame.engine), width)]


def draw_diagnosis(diagnosis: Diagnosis, width: int) -> TextRow:
    """The limit, its evidence and the advice; if there is no room, evidence is dropped from the end."""
    symbol, style = _STYLES.get(diagnosis.bottleneck, ("▲", "warn"))
    advice: list[Run] = [(" → ", "muted"), (diagnosis.advice, "strong")] if diagnosis.advice else []
    for kept in range(len(diagnosis.evidence), -1, -1):
        evidence = ", ".join(diagnosis.evidence[:kept])
        row: list[Run] = [
            (f"{symbol} ", style),
            (diagnosis.bottleneck.value, style),
            (f": {evidence}" if kept else "", ""),
        ]
        row += advice
        if row_width(row) <= width:
            break
    return fitted(row, width)
