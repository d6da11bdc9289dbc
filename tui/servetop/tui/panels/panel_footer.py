"""What stands at the bottom edge of a panel."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.tui.drawing import formats
from servetop.tui.drawing.cursor import MARK
from servetop.tui.drawing.text_runs import TextRow, row_width
from servetop.tui.state.run_state import Frame


def remarks(moment: Frame, own: TextRow, *, pointed: bool) -> Sequence[TextRow]:
    """The panel's own remark; before it the cursor's instant, where the figures are that one's (`pointed`)."""
    if moment.cursor is None or not pointed:
        return [own]
    where: TextRow = [(f"{MARK} ", "cursor"), (formats.clock_time(moment.cursor), "strong")]
    return [where, own] if row_width(own) else [where]
