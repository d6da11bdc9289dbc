"""One line: what limits throughput now, and what to try; at the end of a run, what the run found."""

from __future__ import annotations

from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.diagnosis.run_verdict import RunCause
from servetop.analysis.diagnosis.wording import without_intervals
from servetop.analysis.story.story import Story
from servetop.core.errors import ExitCode
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, row_width, shortened
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame

_QUIET = ("·", "muted")
_WARNING = ("▲", "warn")
_STYLES = {
    Bottleneck.HEADROOM: ("✓", "good"),
    Bottleneck.SERVING: ("✓", "good"),
    Bottleneck.UNCLEAR: ("?", "muted"),
    Bottleneck.NOT_JUDGED: ("?", "muted"),
    Bottleneck.FAILED: ("✖", "bad"),
    Bottleneck.FAILING: ("✖", "bad"),
    Bottleneck.STALL: ("✖", "bad"),
    **dict.fromkeys(
        (
            Bottleneck.STARTING,
            Bottleneck.IDLE,
            Bottleneck.PAUSED,
            Bottleneck.DRAINING,
            Bottleneck.RESTARTING,
            Bottleneck.WARMING_UP,
            Bottleneck.SETTLING,
        ),
        _QUIET,
    ),
}
"""Symbol and style; all other limits are warnings."""
_RUN_STYLES = {
    RunCause.HEADROOM: ("✓", "good"),
    RunCause.UNCLEAR: ("?", "muted"),
    RunCause.NO_LOAD: _QUIET,
    RunCause.FAILING: ("✖", "bad"),
    RunCause.ENGINE_FAILED: ("✖", "bad"),
    RunCause.STALL: ("✖", "bad"),
}


_SHORTENED_TO = 24
"""Minimum cells for a shortened piece of evidence; with less room it is dropped."""


class DiagnosisLine(Panel):
    """One row without a frame."""

    def title(self, frame: Frame) -> list[TextRow]:  # noqa: ARG002
        return []

    def draw(self, frame: Frame, width: int, height: int) -> list[TextRow]:  # noqa: ARG002
        if frame.pointed is None and frame.end is not None and not frame.watched:
            return [_draw_end(frame, width)]
        return [draw_diagnosis(frame.verdict, width, watched=frame.watched)]


def _draw_end(frame: Frame, width: int) -> TextRow:
    if frame.story is not None:
        return draw_headline(frame.story, width)
    if frame.end is not None and frame.end.exit_code == ExitCode.ENGINE_FAILED:
        return fitted([("✖ the engine failed: its last seconds do not show what limits it", "muted")], width)
    return fitted([("… judging the run", "muted")], width)


def run_mark(cause: RunCause) -> Run:
    """Return the symbol of a run's verdict, and its style."""
    return _RUN_STYLES.get(cause, ("▲", "warn"))


def story_mark(story: Story) -> Run:
    """Return the symbol of a story, and its style; that of a sweep is the best cell's, if there is one."""
    if story.sweep is None:
        return run_mark(story.verdict.cause)
    return ("★", "good") if story.sweep.best is not None else ("▲", "warn")


def draw_headline(story: Story, width: int) -> TextRow:
    """The verdict of the run; without room for all, without the intervals of rates, then without its last parts."""
    symbol, style = story_mark(story)
    text = sanitize_line(story.headline)
    if row_width([(f"{symbol} ", style), (text, "")]) > width:
        text = without_intervals(text)
    subject = text.partition(": ")[0] if story.sweep is not None else story.verdict.cause.value
    parts = text.removeprefix(subject).split("; ")
    for kept in range(len(parts), 0, -1):
        row: list[Run] = [(f"{symbol} {subject}", style), ("; ".join(parts[:kept]), "")]
        if row_width(row) <= width:
            break
    return fitted(row, width)


def draw_diagnosis(diagnosis: Diagnosis, width: int, *, watched: bool = False) -> TextRow:
    """Return the limit, its evidence and the advice; if there is no room, evidence is dropped from the end.

    A long piece, such as the reason of failing requests, is shortened instead. A run drains as planned; that a server
    which is `watched` takes no requests is a warning, as in the table of servers.
    """
    calm = _STYLES.get(diagnosis.bottleneck, _WARNING)
    symbol, style = _WARNING if watched and diagnosis.bottleneck is Bottleneck.DRAINING else calm
    advice: list[Run] = [(" → ", "muted"), (diagnosis.advice, "strong")] if diagnosis.advice else []
    limit: list[Run] = [(f"{symbol} ", style), (diagnosis.bottleneck.value, style)]
    pieces = [sanitize_line(piece) for piece in diagnosis.evidence]
    room = width - row_width([*limit, *advice])
    while pieces and row_width(evidence := [(": " + ", ".join(pieces), "")]) > room:
        left = row_width([(pieces[-1], "")]) - row_width(evidence) + room
        pieces[-1:] = [shortened(pieces[-1], left)] if left >= _SHORTENED_TO else []
    return fitted([*limit, *([(": " + ", ".join(pieces), "")] if pieces else []), *advice], width)
