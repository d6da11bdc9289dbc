"""The log view: the logs of engine and servetop on the whole screen, with levels and a search."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from servetop.core.events import Severity
from servetop.core.text.counted import counted
from servetop.tui.drawing.log_rows import SEVERITY_STYLES, head, wrapped
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, placard
from servetop.tui.panels.live.log import LogPanel
from servetop.tui.state.frame import Frame
from servetop.tui.state.log_entries import LEVELS, LogEntry, MergedLog, matching

_LEVEL_NAMES = {Severity.INFO: "all lines", Severity.WARNING: "warnings and errors", Severity.ERROR: "errors only"}


class LogView(LogPanel):
    """The log, `back` lines before its end, from severity `least` on; matches of `search_text` are marked."""

    back: reactive[int] = reactive(0)
    least: reactive[Severity] = reactive(Severity.INFO)
    search_text: reactive[str] = reactive("")
    wrap: reactive[bool] = reactive(True)
    """Whether lines longer than the width take several rows; else they are cut."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._log = MergedLog()
        self._at: int | None = None
        self._drawn = 0

    def title(self, frame: Frame) -> Sequence[TextRow]:
        parts: list[TextRow] = [
            *super().title(frame),
            [(_LEVEL_NAMES[self.least], "muted" if self.least is Severity.INFO else "warn")],
        ]
        if self.search_text:
            matches = matching(self.entries(frame), self.search_text)
            which = f"{matches.index(self._at) + 1} of " if self._at in matches else ""
            parts.append(
                [(f"/{self.search_text} ", "key"), (f"{which}{len(matches)} found", "strong" if matches else "warn")]
            )
        where = "the end" if not self.back else f"{counted(self.back, 'line')} before the end"
        return [*parts, *([] if self.wrap else [[("long lines cut", "warn")]]), [(where, "muted")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        """Return the lines that end `back` lines before the newest."""
        entries = self.entries(frame)
        if not entries:
            query = "nothing written yet" if self.least is Severity.INFO else "no such lines"
            return placard(query, width=width, height=height)
        grown = max(len(entries) - self._drawn, 0) if self._drawn else 0
        self._drawn = len(entries)
        if self.back and grown:  # the lines that are being read keep their place while the log grows
            self.set_reactive(LogView.back, self.back + grown)
        most = self._most_back(entries, width, height)
        end = len(entries) - min(self.back, most)
        rows: list[TextRow] = []
        while end > 0 and len(rows) < height:
            end -= 1
            rows = [*self._rows_of(entries[end], width, chosen=end == self._at), *rows]
        return rows[:height] if 0 < most <= self.back else rows[len(rows) - min(len(rows), height) :]

    def _rows_of(self, entry: LogEntry, width: int, *, chosen: bool = False) -> list[TextRow]:
        return entry_rows(entry, width, query=self.search_text, chosen=chosen, wrap=self.wrap)

    def _most_back(self, entries: Sequence[LogEntry], width: int, height: int) -> int:
        """Return the lines before the end at which the first line is at the top."""
        rows = 0
        for number, entry in enumerate(entries):
            rows += len(self._rows_of(entry, width))
            if rows >= height:
                return max(len(entries) - number - 1, int(rows > height))
        return 0

    def entries(self, frame: Frame) -> Sequence[LogEntry]:
        """Return the entries of the selected level."""
        return self._log.entries(frame, least=self.least)

    def scroll(self, lines: int) -> None:
        """Scroll up (positive) or down by lines."""
        entries = self.entries(self.frame) if self.frame else ()
        self.back = min(max(self.back + lines, 0), self._most_back(entries, *self.size))
        self.watch_frame(self.frame)

    def toggle_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self.wrap = not self.wrap
        self.watch_frame(self.frame)

    def next_level(self) -> None:
        """Select the next level, fewer lines; after errors only, all again. Goes to the end."""
        self.least = LEVELS[(LEVELS.index(self.least) + 1) % len(LEVELS)]
        self.back, self._at, self._drawn = 0, None, 0
        self.watch_frame(self.frame)

    def search(self, query: str) -> None:
        """Mark the matches of a query, and go to the newest; an empty query ends the search."""
        self.search_text, self._at = query, None
        self.go_to_match(-1)

    def go_to_match(self, direction: int) -> None:
        """Go to the next older (-1) or newer (1) match; stays at the first and last."""
        entries = self.entries(self.frame) if self.frame else ()
        matches = matching(entries, self.search_text)
        from_here = len(entries) if self._at is None else self._at
        beyond = [each for each in matches if (each - from_here) * direction > 0]
        if beyond:
            self._at = min(beyond) if direction > 0 else max(beyond)
            self.back = min(self._back_around(entries, self._at), self._most_back(entries, *self.size))
        self.watch_frame(self.frame)

    def _back_around(self, entries: Sequence[LogEntry], at: int) -> int:
        """Return the lines before the end at which the line `at` is in the middle."""
        width, height = self.size
        rows, end = len(self._rows_of(entries[at], width)), at + 1
        while end < len(entries) and (rows := rows + len(self._rows_of(entries[end], width))) <= height // 2:
            end += 1
        return len(entries) - end


def entry_rows(
    entry: LogEntry, width: int, *, query: str = "", chosen: bool = False, wrap: bool = True
) -> list[TextRow]:
    """Time, mark and text; servetop's own entries have its name. The place in the engine's code is at the end."""
    style = SEVERITY_STYLES[entry.severity]
    start = head(entry.at, entry.severity, entry.symbol, chosen=chosen)
    start += [("servetop ", style or "key")] if entry.symbol else []
    source = _marked(f"  {entry.source}", query, "faint") if entry.source else []
    text = [*_marked(entry.text, query, style), *source]
    return wrapped(start, text, width) if wrap else [fitted([*start, *text], width)]


def _marked(text: str, query: str, style: str) -> list[Run]:
    at = text.casefold().find(query.casefold()) if query else -1
    if at < 0 or len(text.casefold()) != len(text):
        return [(text, style)]
    end = at + len(query)
    return [(text[:at], style), (f"[{text[at:end]}]", "cursor"), (text[end:], style)]
