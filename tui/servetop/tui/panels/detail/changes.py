"""What differs between both runs besides their measurements."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.manifest.manifest_diff import DifferenceKind, ManifestDifference
from servetop.core.text.counted import counted
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import TextRow, fitted, shortened
from servetop.tui.panels.panel import Panel
from servetop.tui.state.baseline import STYLE
from servetop.tui.state.frame import Frame

_KEY = 34
"""Cells of a key, at most."""
_MOST, _FEW, _TALL = 6, 3, 34
"""Rows of keys, at most; in a low terminal; and the height of one that is not low."""


class ChangesPanel(Panel):
    """The changed keys with both values: as many as fit, then the number of the others."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        if frame.baseline is None:
            return [[("Changes", "title")]]
        count, unlike = len(frame.baseline.changed_keys), frame.baseline.incomparable_keys
        names: TextRow = [
            (sanitize_line(frame.baseline.name), STYLE),
            (" → ", ""),
            (sanitize_line(frame.baseline.names[0]), "strong"),
        ]
        warning: list[TextRow] = [[("▲ not comparable", "bad")]] if unlike else []
        return [[("Changes ", "title"), *names], *warning, [(counted(count, "key"), "")]]

    def watch_frame(self, frame: Frame | None) -> None:
        if frame is not None:
            count = len(frame.baseline.changes) if frame.baseline else 0
            self.styles.height = max(min(count, _MOST if self.screen.size.height >= _TALL else _FEW), 1) + 2
        super().watch_frame(frame)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        if frame.baseline is None or not frame.baseline.changes:
            return [[("nothing that is recorded differs" if frame.baseline else "", "muted")]]
        return draw_changes(frame.baseline.changes, width, height)


def draw_changes(changes: Sequence[ManifestDifference], width: int, height: int) -> list[TextRow]:
    """`key  baseline → run` in each row; those that make figures incomparable stand out."""
    name = min(max(len(change.key) for change in changes), _KEY, width // 2)
    rows: list[TextRow] = [
        fitted(
            [
                (f"{shortened(sanitize_line(change.key), name):<{name}}  ", _style(change)),
                (_value(change.a), STYLE),
                (" → ", "muted"),
                (_value(change.b), "strong"),
            ],
            width,
        )
        for change in changes
    ]
    if len(rows) <= height:
        return rows
    return [*rows[: height - 1], [(f"and {len(rows) - height + 1} more", "muted")]]


def _style(change: ManifestDifference) -> str:
    return "bad" if change.kind is DifferenceKind.WORKLOAD and not change.unknown else "muted"


def _value(text: str | None) -> str:
    return "not recorded" if text is None else sanitize_line(text)
