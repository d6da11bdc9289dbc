"""The log view: the logs of engine and servetop on the whole screen, with levels and a search."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from servetop.core.events import Severity
from servetop.tui.drawing import formats
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, placard
from servetop.tui.panels.live.log import SEVERITY_STYLES, LogPanel
from servetop.tui.state.frame import Frame
from servetop.tui.state.log_entries import LEVELS, LogEntry, MergedLog, matching

_LEVEL_NAMES = {Severity.INFO: "all lines", Severity.WARNING: "warnings and errors", Severity.ERROR: "errors only"}


class LogView(LogPanel):
    """The log, `back` lines before its end, from severity `least` on; matches of `search_text` are marked."""

    back: reactive[int] = reactive(0)
    least: reactive[Severity] = reactive(Severity.INFO)
    search_text: reactive[str] = reactive("")

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
        where = "the end" if not self.back else f"{self.back} lines before the end"
        return [*parts, [(where, "muted")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        """The lines that end `back` lines before the newest."""
        entries = self.entries(frame)
        if not entries:
            query = "nothing written yet" if self.least is Severity.INFO else "no such lines"
            return placard(query, width=width, height=height)
        grown = max(len(entries) - self._drawn, 0) if self._drawn else 0
        self._drawn = len(entries)
        if self.back and grown:  # the lines that are being read keep their place while the log grows
            self.set_reactive(LogView.back, self.back + grown)
        end = max(len(entries) - self.back, min(height, len(entries)))
        start = max(end - height, 0)
        chosen = None if self._at is None else self._at - start
        return [
            entry_row(entry, width, query=self.search_text, chosen=number == chosen)
            for number, entry in enumerate(entries[start:end])
        ]

    def entries(self, frame: Frame) -> Sequence[LogEntry]:
        """The entries of the selected level."""
        return self._log.entries(frame, least=self.least)

    def scroll(self, lines: int) -> None:
        """Scroll up (positive) or down by lines."""
        count = len(self.entries(self.frame)) if self.frame else 0
        self.back = min(max(self.back + lines, 0), max(0, count - self.size.height))
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
            middle = self.size.height // 2
            self.back = min(max(len(entries) - self._at - middle, 0), max(0, len(entries) - self.size.height))
        self.watch_frame(self.frame)


def entry_row(entry: LogEntry, width: int, *, query: str = "", chosen: bool = False) -> TextRow:
    """Time, source and text; servetop's own lines have a symbol and its name."""
    style = SEVERITY_STYLES[entry.severity]
    voice: list[Run] = [(f"{entry.symbol} servetop ", style or "key")] if entry.symbol else [("  ", "")]
    mark: Run = ("▸", "cursor") if chosen else (" ", "")
    return fitted(
        [mark, (f"{formats.clock_time(entry.at)[3:]} ", "faint"), *voice, *_marked(entry, query, style)], width
    )


def _marked(entry: LogEntry, query: str, style: str) -> list[Run]:
    at = entry.text.casefold().find(query.casefold()) if query else -1
    if at < 0 or len(entry.text.casefold()) != len(entry.text):
        return [(entry.text, style)]
    end = at + len(query)
    return [(entry.text[:at], style), (f"[{entry.text[at:end]}]", "cursor"), (entry.text[end:], style)]
