"""The timeline: the whole run on one line, with stages, events and the playhead."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
from textual import events
from textual.message import Message

from servetop.analysis.diagnosis.episode import KINDS
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.charts import Axes, Bars, block_bars
from servetop.tui.drawing.cursor import MARK
from servetop.tui.drawing.scale import peak_of, round_limit
from servetop.tui.drawing.text_runs import Run, TextRow, merged, row_width
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.timeline_events import TimelineEvent, timeline_events


class TimelinePanel(Panel):
    """Stage labels, the run's throughput, and a line with events and the position."""

    class Chosen(Message):
        """The mouse selected a position on the timeline."""

        def __init__(self, share: float) -> None:
            """`share` of the run's length; the last cell is 1."""
            super().__init__()
            self.share = share

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None:
            self.post_message(self.Chosen(min(offset.x / max(self.size.width - 1, 1), 1.0)))

    def title(self, frame: Frame) -> Sequence[TextRow]:
        named = _named(timeline_events(frame), frame.view.playhead.at)
        where = f"{formats.clock(frame.view.playhead.at)} of {formats.clock(frame.edge)}"
        parts: list[TextRow] = [[("Timeline ", "title"), (where, "strong")]]
        return parts + [[(f"{each.symbol} {formats.clock(each.at)} ", each.style), (each.text, "")] for each in named]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        return draw_timeline(frame, width, height)


def _named(events: Sequence[TimelineEvent], at: float) -> Sequence[TimelineEvent]:
    """Return the last event up to a time; if it is an episode, the most serious one that lasts then.

    After the error that ends the run it is that error.
    """
    past = [event for event in events if event.at <= at]
    last = ([event for event in past if event.ends_run] or past)[-1:]
    lasting = [event for event in events if event.episode and event.at <= at <= (event.episode.end or at)]
    return [min(lasting, key=_seriousness)] if lasting and last[0].episode else last


def draw_timeline(frame: Frame, width: int, height: int) -> list[TextRow]:
    """The line alone in one row; labels above it in two; then lanes of episodes, and throughput with room left."""
    events = timeline_events(frame)
    episodes = [event for event in events if event.episode is not None]
    lanes = [merged(lane) for lane in reversed(_lanes(episodes, frame, width, most=max(height - 2, 0)))]
    rows: list[TextRow] = [*lanes, _line(events, frame, width, barred=bool(lanes))]
    free = height - len(rows) - 1
    if free >= 1:
        until = frame.overview_until
        times = np.linspace(0, until, frame.overview.size + 1)[1:]
        axes = Axes(
            window=(0.0, max(frame.edge, 1e-9)), limit=round_limit(peak_of(frame.overview)), cursor=frame.cursor
        )
        bars = Bars(times=times, values=frame.overview, style="muted")
        rows = [*block_bars(bars, axes, width=width, height=free), *rows]
    return [_labels(frame, width), *rows] if height >= 2 else rows


def _column(at: float, frame: Frame, width: int) -> int:
    return min(max(int(at / max(frame.edge, 1e-9) * width), 0), width - 1)


def _labels(frame: Frame, width: int) -> TextRow:
    """Return each stage's label at its start, without the words that do not fit before the start of the next one."""
    starts = [(_column(stage.at, frame, width), sanitize_line(stage.label)) for stage in frame.all_stages]
    row: list[Run] = []
    position = 0
    current = len(frame.stages) - 1
    for index, (start, label) in enumerate(starts):
        end = starts[index + 1][0] if index + 1 < len(starts) else width
        row.append((" " * (start - position), ""))
        text = _whole_words("┊" + label, max(end - start - 1, 0))
        row.append((text, "strong" if index == current else "muted"))
        position = start + row_width([(text, "")])
    return row


def _whole_words(label: str, width: int) -> str:
    """As many parts of a label as fit, else as many words of the first; only its mark if not even one fits."""
    for separator in (" · ", " "):
        parts = label.split(separator)
        while len(parts) > 1 and (row_width([(label, "")]) > width or parts[-1] == "to"):
            parts.pop()
            label = separator.join(parts)
    return label if row_width([(label, "")]) <= width else label[: min(width, 1)]


def _lanes(events: Sequence[TimelineEvent], frame: Frame, width: int, *, most: int) -> list[list[Run]]:
    """Return bars of the episodes, the most serious first, at most `most` rows of cells; others are omitted."""
    lanes: list[list[Run]] = []
    for event in sorted(events, key=_seriousness):
        first, last = _extent(event, frame, width)
        free = (lane for lane in lanes if all(text == " " for text, _ in lane[max(first - 1, 0) : last + 2]))
        lane = next(free, None)
        if lane is None and len(lanes) < most:
            lane = [(" ", "")] * width
            lanes.append(lane)
        if lane is not None:
            name = "" if event.episode is None else event.episode.kind.value
            label = f" {name} " if len(name) + 4 <= last - first + 1 else ""
            bar = "▬" + label + "▬" * (last - first - len(label))
            lane[first : last + 1] = [(cell, event.style) for cell in bar[: last - first + 1]]
    return lanes


def _seriousness(event: TimelineEvent) -> tuple[int, float]:
    return (0 if event.episode is None else KINDS.index(event.episode.kind), event.at)


def _extent(event: TimelineEvent, frame: Frame, width: int) -> tuple[int, int]:
    """Return the first and the last cell of an episode."""
    end = frame.edge if event.episode is None or event.episode.end is None else event.episode.end
    return _column(event.at, frame, width), _column(end, frame, width)


def _line(events: Sequence[TimelineEvent], frame: Frame, width: int, *, barred: bool) -> TextRow:
    """The line with stages, steady windows, events and the playhead; with episodes unless they are `barred` above."""
    cells: list[Run] = [("─", "faint")] * width
    here = _column(frame.view.playhead.at, frame, width)
    cells[: here + 1] = [("━", "muted")] * (here + 1)
    for window in frame.steady.values():
        if window.start is not None and window.end is not None:
            first, last = _column(window.start, frame, width), _column(window.end, frame, width)
            cells[first : last + 1] = [("═", style) for _, style in cells[first : last + 1]]
    for stage in frame.all_stages:
        cells[_column(stage.at, frame, width)] = ("┿", "muted")
    if not barred:
        _add_episodes(cells, events, frame)
    for event in sorted(events, key=lambda event: event.weight):
        if event.episode is None:
            cells[_column(event.at, frame, width)] = (event.symbol, event.style)
    if frame.cursor is not None:
        cells[_column(frame.cursor, frame, width)] = (MARK, "cursor")
    cells[here] = ("█", "cursor")
    return merged(cells)


def _add_episodes(cells: list[Run], events: Sequence[TimelineEvent], frame: Frame) -> None:
    """Draw bars over the line: the most serious on top, with its name where neither a symbol nor a position stands."""
    width = len(cells)
    taken = {_column(event.at, frame, width) for event in events if event.episode is None}
    positions = {_column(at, frame, width) for at in (frame.view.playhead.at, frame.cursor) if at is not None}
    bars: list[tuple[int, Run]] = []
    for event in sorted((event for event in events if event.episode), key=_seriousness):
        first, last = _extent(event, frame, width)
        name = f" {event.episode.kind.value} " if event.episode else ""
        start = _name_start(range(first + 1, last - len(name) + 1), len(name), taken, positions)
        bar = "▬" * (last + 1 - first)
        text = bar if start is None else bar[: start - first] + name + bar[start - first + len(name) :]
        bars += [
            (column, (text[column - first], event.style)) for column in range(first, last + 1) if column not in taken
        ]
        taken |= set(range(first, last + 1))
    for column, cell in bars:
        cells[column] = cell


def _name_start(starts: range, length: int, taken: Set[int], positions: Set[int]) -> int | None:
    """The first start at which a name covers nothing `taken`; while a position passes it, the first one beyond its end.

    So a name moves twice for a playhead, not with each of its steps; on a bar with room for one place it is omitted
    meanwhile: the title names the episode at the playhead.
    """
    free = [start for start in starts if taken.isdisjoint(range(start, start + length))]
    apart = (start for start in free if start == free[0] or start >= free[0] + length)
    return next((start for start in apart if positions.isdisjoint(range(start, start + length))), None)
