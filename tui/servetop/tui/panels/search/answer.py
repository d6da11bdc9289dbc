"""The answer of a search as of now, which load is kept and why, and the budget that is left."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.interfaces.search_state import LoadFigure, SearchedAnswer, SearchedLoad, SearchState
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import Run, TextRow, fitted
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.search_progress import SearchProgress

_HEAD = 10
"""Cells of the words at the left."""
_EDGES = 4
"""Cells of the border and the padding at both sides."""
_CONFIRM = "confirm"
_DRIFTED = "drifted"
_RESOLVED = ("found", "cliff", "above", "below")
"""Answers that more time would not change."""


class AnswerPanel(Panel):
    """One line for each answer so far, and what happens now; at the end the sentences that are printed."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        progress = frame.search
        if progress is None:
            return [[("Search", "title")]]
        what = "requests in flight" if progress.search.concurrency else "request rate"
        objectives = sanitize_line(" · ".join(progress.search.slo))
        return [[("Search ", "title"), (f"largest {what}", "")], [(objectives, "")]]

    def subtitle(self, frame: Frame) -> TextRow:
        return [] if frame.search is None else budget_left(frame.search)

    def watch_frame(self, frame: Frame | None) -> None:
        """Take as many rows as there are."""
        if frame is not None and frame.search is not None:
            self.styles.height = len(draw_answer(frame.search, self.app.size.width - _EDGES)) + 2
        super().watch_frame(frame)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        return [] if frame.search is None else draw_answer(frame.search, width)[:height]


def budget_left(progress: SearchProgress) -> TextRow:
    """Return the time that is left, which falls between decisions too; at the end what was used."""
    state, budget = progress.newest, progress.search.budget
    if state is None:
        return [("budget ", ""), (formats.clock(budget), "strong")]
    if progress.over:
        return [("used ", ""), (formats.clock(round(budget - state.seconds_left)), "strong"), (_of(budget), "muted")]
    left = max(0.0, state.seconds_left - max(0.0, progress.at - state.at))
    return [(formats.clock(round(left)), "strong"), (" left", ""), (_of(budget), "muted")]


def _of(budget: float) -> str:
    return f" of {formats.clock(budget)}"


def draw_answer(progress: SearchProgress, width: int) -> list[TextRow]:
    """Return the rows: of each answer, of what is known beside it, and of the load that is kept now."""
    state = progress.newest
    if state is None:
        newest_note = progress.newest_note or "no decision yet"
        return [*_wrapped("answer", newest_note, width, style="strong")]
    rows: list[TextRow] = []
    for answer in state.answers:
        if progress.over:
            rows += _wrapped("answer", sanitize_line(answer.text), width, style="strong")
        else:
            rows.append(fitted([(f"{'answer':<{_HEAD}}", "muted"), *_so_far(answer, progress)], width))
    if state.note:
        rows += _wrapped("but", sanitize_line(state.note), width, style="warn")
    return [*rows, *_now(progress, state, width)]


def _wrapped(head: str, text: str, width: int, *, style: str) -> list[TextRow]:
    """Return a sentence in rows behind a word, wrapped between words."""
    lines: list[str] = [""]
    for word in text.split():
        candidate = f"{lines[-1]} {word}".strip()
        if len(candidate) <= max(width - _HEAD, _HEAD) or not lines[-1]:
            lines[-1] = candidate
        else:
            lines.append(word)
    return [[(f"{'' if number else head:<{_HEAD}}", "muted"), (line, style)] for number, line in enumerate(lines)]


def _so_far(answer: SearchedAnswer, progress: SearchProgress) -> list[Run]:
    """Return the interval, the best estimate and what sets it, before the search has ended."""
    if answer.kind == _DRIFTED:
        return [(sanitize_line(answer.text), "warn")]
    low, high, search = answer.low, answer.high, progress.search
    known_low = low is not None and low > search.low
    known_high = high is not None and high < search.high
    if known_low and known_high and low is not None and high is not None:
        ends = f"{progress.number(low)} to {progress.number(high)} {progress.unit}"
    elif known_low and low is not None:
        ends = f"above {progress.number(low)} {progress.unit}"
    elif known_high and high is not None:
        ends = f"below {progress.number(high)} {progress.unit}"
    else:
        return [("not known yet", "strong")]
    runs: list[Run] = [(ends, "strong")]
    if known_low and known_high and answer.load is not None:
        runs += [(", best estimate ", "muted"), (progress.number(answer.load), "")]
        what = "the queue" if answer.binding is None else progress.objectives[answer.binding].label
        runs += [(", set by ", "muted"), (what, "")]
    return [*runs, (", resolved", "good")] if answer.kind in _RESOLVED else runs


def _now(progress: SearchProgress, state: SearchState, width: int) -> list[TextRow]:
    """Return the load that is kept now and why; at the end what the confirmation showed."""
    if state.load is not None:
        why = f": {state.reason}" if state.reason else ""
        load = f"{progress.number(state.load)} {progress.unit}"
        return [fitted([(f"{'now':<{_HEAD}}", "muted"), (load, "strong"), (why, "")], width)]
    last = progress.loads[-1] if progress.loads else None
    if last is None or last.purpose != _CONFIRM:
        return []
    missed = any(each.verdict == "missed" for each in last.figures)
    head, style = ("not kept", "bad") if missed else ("confirmed", "")
    return _wrapped(head, _confirmed(progress, last), width, style=style)


def _confirmed(progress: SearchProgress, load: SearchedLoad) -> str:
    parts = []
    for objective, figure in zip(progress.objectives, load.figures, strict=False):
        parts.append(sanitize_line(f"{objective.label}: {_seen(figure)}"))
    seconds = formats.clock(round(load.end - load.begin))
    return f"{progress.number(load.load)} {progress.unit} for {seconds}: {', '.join(parts)}"


def _seen(figure: LoadFigure) -> str:
    if figure.mean is not None:
        return formats.seconds(figure.mean, prose=True)
    return "no sample yet" if figure.share is None else f"{formats.percent(1 - figure.share, zeros='never')} within"
