"""What happened: the story of a finished run, line by line, each with the time that it is about."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.geometry import Size
from textual.message import Message

from servetop.analysis.diagnosis.story_line import LineKind, StoryLine
from servetop.analysis.story.story import Story
from servetop.core.text.counted import counted
from servetop.core.text.formats import clock
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, row_width
from servetop.tui.panels.live.diagnosis import story_mark
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame

_MOST_ROWS = 12
_JUDGING = "judging the run"
_TIME = 5
"""Width of a time up to `99:59`, in cells; later ones are wider."""


_QUOTED = 80
"""Characters by which a quoted reason is recognised: a story shortens long ones."""


def card_shown(frame: Frame) -> bool:
    """Whether the run has ended at the playhead, no cursor points at another time, and the card was not closed."""
    ended = frame.end is not None and not frame.watched  # a watch has no story
    return ended and frame.pointed is None and not frame.view.story_hidden


def quotes(frame: Frame, text: str) -> bool:
    """Whether the card is shown and one of its lines quotes the reason in the text, of a long one the beginning."""
    if frame.story is None or not text or not card_shown(frame):
        return False
    lines = [sanitize_line(line.text) for line in frame.story.lines]
    reasons = [reason for reason in (line.partition(": ")[2][:_QUOTED] for line in lines) if reason]
    return any(text[:_QUOTED] in line for line in lines) or any(reason in text for reason in reasons)


class StoryCard(Panel):
    """The lines of the story, the selected one marked; a click on a line goes to its time."""

    class Chosen(Message):
        """A click on a line."""

        def __init__(self, line: int) -> None:
            """`line`: its number from 0."""
            super().__init__()
            self.line = line

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._laid_out_for: Story | None = None

    def title(self, frame: Frame) -> Sequence[TextRow]:
        since = next((stage.at for stage in frame.stages if stage.request_rate is not None), None)
        lasted: TextRow = [] if since is None or frame.end is None else [(f"{clock(frame.end.at - since)} of load", "")]
        totals = frame.stats.totals
        count = max(totals.sent, totals.completed + totals.failed)
        requests: TextRow = [(counted(round(count), "request"), "muted")] if count else []
        return [[("What happened", "strong")], *(part for part in (lasted, requests) if part)]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return 1 if self.frame is None else len(card_rows(self.frame, width, _MOST_ROWS))

    def watch_frame(self, frame: Frame | None) -> None:
        """Take the height of a new story before its rows are drawn."""
        story = None if frame is None else frame.story
        if story is not self._laid_out_for:
            self._laid_out_for = story
            self.refresh(layout=True)
        super().watch_frame(frame)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        return [row for _, row in card_rows(frame, width, height)]

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None or self.frame is None:
            return
        rows = card_rows(self.frame, self.size.width, self.size.height)
        if self.frame.story is not None and at.y < len(rows):
            self.post_message(self.Chosen(rows[at.y][0]))


def card_rows(frame: Frame, width: int, height: int) -> list[tuple[int, TextRow]]:
    """Return the rows of the card, each with the number of its line.

    Lines are wrapped as far as there is room, advice first, else shortened; of too many lines those around the
    selected one are shown.
    """
    if frame.story is None:
        return [(0, fitted([(f"  … {_JUDGING}", "muted")], width))]
    items = _items(frame.story)
    selected = min(frame.view.story_line, len(items) - 1)
    facts, advice = [each for each in items if not each.line.advice], [each for each in items if each.line.advice]
    room = max(height - len(advice), 1)
    first = min(max(selected - room // 2, 0), max(len(facts) - room, 0))
    shown = [*facts[first : first + room], *advice][:height]
    drawn = {item.number: _item_rows(item, selected, width) for item in shown}
    spare = height - len(shown)
    for item in sorted(shown, key=lambda each: not each.line.advice):
        rows = drawn[item.number]
        if len(rows) - 1 <= spare:
            spare -= len(rows) - 1
        else:
            drawn[item.number] = [fitted([*_head(item, selected), _text(item, selected, item.text)], width)]
    return [(number, row) for number, rows in drawn.items() for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """A line of the story, ready to be drawn."""

    number: int
    line: StoryLine
    mark: Run
    text: str
    time_width: int


def _items(story: Story) -> list[_Item]:
    time_width = max(_TIME, *(len(_time(line)) for line in story.lines), 0)
    return [
        _Item(
            number=number,
            line=line,
            mark=_mark(line, story),
            text=sanitize_line(line.text),
            time_width=time_width,
        )
        for number, line in enumerate(story.lines)
    ]


def _mark(line: StoryLine, story: Story) -> Run:
    """Return an arrow for advice, the sign of the verdict for its cause, a dot for everything else."""
    if line.advice:
        return ("→", "key")
    return story_mark(story) if line.kind is LineKind.CAUSE else ("·", "muted")


def _time(line: StoryLine) -> str:
    return "" if line.at is None else clock(line.at)


def _item_rows(item: _Item, selected: int, width: int) -> list[TextRow]:
    """Return the line, wrapped under its first word."""
    head = _head(item, selected)
    first, *rest = textwrap.wrap(item.text, max(width - row_width(head), 20), break_on_hyphens=False) or [""]
    rows: list[TextRow] = [fitted([*head, _text(item, selected, first)], width)]
    return rows + [fitted([(" " * row_width(head), ""), _text(item, selected, each)], width) for each in rest]


def _head(item: _Item, selected: int) -> list[Run]:
    """Return the selection, the time right-aligned, and the mark."""
    pointer: Run = ("▸ ", "cursor") if item.number == selected else ("  ", "")
    return [pointer, (f"{_time(item.line):>{item.time_width}}  ", "muted"), item.mark, (" ", "")]


def _text(item: _Item, selected: int, text: str) -> Run:
    return (text, "strong" if item.number == selected else "")
