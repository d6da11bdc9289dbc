"""What stands at the bottom edge of a panel."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.tui import formats
from servetop.tui.cursor import MARK
from servetop.tui.lines import Row, row_width
from servetop.tui.run_so_far import Moment


def remarks(moment: Moment, own: Row, *, pointed: bool) -> Sequence[Row]:
    """The panel's own remark; before it the cursor's instant, where the figures are that one's (`pointed`)."""
    if moment.cursor is None or not pointed:
        return [own]
    where: Row = [(f"{MARK} ", "cursor"), (formats.clock_time(moment.cursor), "strong")]
    return [where, own] if row_width(own) else [where]
