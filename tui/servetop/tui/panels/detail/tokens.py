"""The request panel: the tokens of one request, and the engine's state at that time."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import TextRow
from servetop.tui.panels.detail.request_timeline import draw_request
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.request_phases import ended_at


class TokensPanel(Panel):
    """Phases, gaps between chunks, KV usage and queue on the request's own time axis."""

    def __init__(self, record: RequestRecord, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._record = record

    def title(self, frame: Frame) -> Sequence[TextRow]:  # noqa: ARG002
        record = self._record
        style = "strong" if record.status is RequestStatus.OK else "bad"
        parts: list[TextRow] = [[("Request ", "title"), (str(record.id), "strong")], [(record.status.value, style)]]
        if record.error:
            parts.append([(sanitize_line(record.error), "bad")])
        return [
            *parts,
            [("due ", ""), (f"{formats.clock_time(record.due)}.{int(record.due * 1000) % 1000:03d}", "strong")],
        ]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        record = self._record
        stats = frame.engine_between(max(record.due - 0.5, 0.0), ended_at(record) + 0.5)
        return draw_request(record, stats, width, height, preemptions=frame.preemptions)
