"""The engine's log on the whole screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.reactive import reactive

from servetop.tui.lines import Row, placard
from servetop.tui.panels.footer import StatusLine
from servetop.tui.panels.header import HeaderLine
from servetop.tui.panels.log import LogPanel, draw_log
from servetop.tui.run_so_far import Moment
from servetop.tui.screens.moment_screen import MomentScreen


class WholeLog(LogPanel):
    """The log, `back` lines before its end."""

    back: reactive[int] = reactive(0)

    def title(self, moment: Moment) -> Sequence[Row]:
        """Where in the log this is."""
        where = "the end" if not self.back else f"{self.back} lines before the end"
        return [*super().title(moment), [(where, "muted")], [("↑ ↓ PgUp PgDn scroll, esc closes", "muted")]]

    def draw(self, moment: Moment, width: int, height: int) -> Sequence[Row]:
        """The lines that end `back` lines before the newest."""
        if not moment.log:
            return placard("nothing written yet", width=width, height=height)
        end = max(len(moment.log) - self.back, min(height, len(moment.log)))
        return draw_log(moment.log[:end], width, height)


class LogScreen(MomentScreen):
    """Scrolls by line and by page; keeps following at the end."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,l", "app.look_at('live')", "close"),
        Binding("up", "scroll_log(1)", "line up", show=False),
        Binding("down", "scroll_log(-1)", "line down", show=False),
        Binding("pageup", "scroll_log(20)", "page up", show=False),
        Binding("pagedown", "scroll_log(-20)", "page down", show=False),
    ]

    def compose(self) -> ComposeResult:
        """The log between the lines that every screen has."""
        yield HeaderLine(id="header")
        yield WholeLog(id="whole-log")
        yield StatusLine(id="status")

    def action_scroll_log(self, lines: int) -> None:
        """Up (positive) or down by lines."""
        log = self.query_one(WholeLog)
        most = max(0, len(log.moment.log) - log.size.height) if log.moment else 0
        log.back = min(max(log.back + lines, 0), most)
        log.watch_moment(log.moment)
