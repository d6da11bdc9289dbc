"""The trust panel: whether the client's numbers are reliable."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.trust.trust import (
    AGREEMENT_LIMIT,
    LATE_SHARE_LIMIT,
    SENT_SHARE_LIMIT,
    Trust,
)
from servetop.analysis.trust.trust_check import CheckState, TrustCheck
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.text import formats
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, joined, row_width
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame

SYMBOLS: dict[TrustVerdict, Run] = {
    TrustVerdict.OK: ("✓ ok", "good"),
    TrustVerdict.SUSPECT: ("▲ suspect", "warn"),
    TrustVerdict.CLIENT_BOUND: ("✖ client-bound", "bad"),
    TrustVerdict.NO_FIGURES: ("✖ no data", "bad"),
    TrustVerdict.UNKNOWN: ("· nothing sent", "muted"),
}
IMPORTED: Run = ("· unknown (imported)", "muted")
"""The verdict of an imported run, whose client servetop did not observe."""


_UNIT = re.compile(r"(?<=\d) (?=(?:µs|ms|s|%|req/s|tok/s)\b|%)")
"""The space between a number and its unit."""
_NARROWEST = 12
"""Cells in which a reason is wrapped at least."""
_LIMITS_FROM = 48
"""Cells from which a row has its limit."""


class TrustPanel(Panel):
    """The verdict, the checks behind it, and the reasons of those that failed."""

    shows_cursor = True

    def title(self, frame: Frame) -> Sequence[TextRow]:
        found = frame.stats.trust.verdict
        unknown = found is TrustVerdict.UNKNOWN and frame.header.imported is not None
        verdict: TextRow = [("Trust ", "title"), IMPORTED if unknown else SYMBOLS[found]]
        window: TextRow = [(f"last {frame.stats.window:.0f} s", "muted")]
        return [verdict, window] if frame.shows_the_end else [verdict]

    def watch_frame(self, frame: Frame | None) -> None:
        super().watch_frame(frame)
        verdict = TrustVerdict.UNKNOWN if frame is None else frame.stats.trust.verdict
        self.set_class(verdict is TrustVerdict.SUSPECT, "-suspect")
        self.set_class(verdict in (TrustVerdict.CLIENT_BOUND, TrustVerdict.NO_FIGURES), "-client-bound")

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        return draw_trust(frame.stats.trust, width, height)


def draw_trust(trust: Trust, width: int, height: int) -> list[TextRow]:
    """Return the reasons, then one line per check; two compact lines if there are few rows.

    Where not all reasons have a row, the last row counts the others.
    """
    reasons = _reason_rows(trust, width, height)
    if height < 5:
        pairs = [[(f"{name} ", "muted"), (value, "strong")] for name, value in _short(trust)]
        compact: list[TextRow] = [
            joined(pairs[:2], width=width, gap="  "),
            joined(pairs[2:], width=width, gap="  "),
        ]
        return [*reasons, *compact][:height]
    table: list[TextRow] = [_row(each, width) for each in _rows(trust)]
    return [*table, *reasons][:height] if height >= len(table) + len(reasons) else [*reasons, *table][:height]


def _reason_rows(trust: Trust, width: int, height: int) -> list[TextRow]:
    """Return the reasons and the advice, wrapped between words; if there is no room for that, one row each."""
    texts = [(f"▲ {reason}", "warn") for reason in trust.reasons]
    texts += [(f"→ {trust.advice}", "muted")] if trust.advice else []
    room = max(width, _NARROWEST)
    wrapped = [(line, style) for text, style in texts for line in textwrap.wrap(text, room, subsequent_indent="  ")]
    if len(wrapped) > height:
        wrapped = [(_shortened(text, room), style) for text, style in texts]
    if len(wrapped) > height > 1:
        wrapped[height - 1 :] = [(f"… {len(wrapped) - height + 1} more", "warn")]
    return [fitted([line], width) for line in wrapped]


def _shortened(text: str, room: int) -> str:
    """Return the first words of a text; a number stays with its unit."""
    tied = _UNIT.sub("\xa0", text)
    return textwrap.wrap(tied, room, max_lines=1, placeholder="…")[0].replace("\xa0", " ")


@dataclass(frozen=True, slots=True)
class _CheckRow:
    """The texts of one check."""

    name: str
    short: str
    value: str
    limit: str
    check: TrustCheck


def _rows(trust: Trust) -> list[_CheckRow]:
    checks = trust.checks
    ms = formats.seconds
    law, tokens = formats.signed_percent(trust.littles_law_error), formats.signed_percent(trust.token_error)
    share = formats.percent(min(trust.sent_share, 1.0))
    late = formats.percent(trust.late_share)
    lag = f"{ms(trust.lateness_limit)} or less"
    first = (
        _CheckRow("late in closed loop", "late", late, f"{_percent(LATE_SHARE_LIMIT)} or less", checks["late_share"])
        if trust.closed
        else _CheckRow("schedule slip p99", "slip", ms(trust.slip_p99), lag, checks["slip_p99"])
    )
    within = f"within {_percent(checks['littles_law'].limit)}"
    return [
        first,
        _CheckRow("loop lag p99", "lag", ms(trust.loop_lag_p99), lag, checks["loop_lag_p99"]),
        _CheckRow("sent / offered", "sent", share, f"{_percent(SENT_SHARE_LIMIT)} or more", checks["sent_share"]),
        _CheckRow("Little's law", "Little", law, within, checks["littles_law"]),
        _CheckRow("tokens engine/client", "tokens", tokens, f"within {_percent(AGREEMENT_LIMIT)}", checks["tokens"]),
        *_ttft_row(trust),
    ]


def _ttft_row(trust: Trust) -> list[_CheckRow]:
    """Return the client's mean TTFT beyond the engine's, if the engine exports it."""
    check, excess = trust.checks["ttft"], trust.times.ttft.excess
    if check.state is CheckState.UNKNOWN:
        return []
    limit = f"{formats.seconds(check.limit)} or less"
    return [_CheckRow("TTFT client - engine", "TTFT", formats.seconds(excess), limit, check)]


def _percent(limit: float) -> str:
    """`5 %`, `10.5 %`: never rounded to a limit other than the one in force."""
    return formats.percent(round(limit, 3), zeros="never")


SIGNS: dict[CheckState, Run] = {
    CheckState.PASSED: ("✓ ", "good"),
    CheckState.BROKEN: ("▲ ", "warn"),
    CheckState.EXEMPT: ("· ", "muted"),
    CheckState.UNKNOWN: ("· ", "muted"),
}


def _row(row: _CheckRow, width: int) -> TextRow:
    """Name, value and limit; where a check does not apply, the reason instead of the limit, or of both if narrow."""
    check = row.check
    style = "warn" if check.state is CheckState.BROKEN else "strong"
    if check.exemption and width < _LIMITS_FROM:
        head: list[Run] = [SIGNS[check.state], (f"{row.short} ", "muted"), (f"{row.value}, ", "")]
        room = max(width - row_width(head), 1)
        return fitted([*head, (textwrap.shorten(check.exemption, room, placeholder="…"), "muted")], width)
    runs: list[Run] = [SIGNS[check.state], (f"{row.name:<21}", "muted"), (f"{row.value:>8}", style)]
    return fitted([*runs, (f"   {check.exemption or row.limit}", "faint")] if width >= _LIMITS_FROM else runs, width)


def _short(trust: Trust) -> list[tuple[str, str]]:
    return [
        ("slip", f"{formats.seconds(trust.slip_p99):>7}"),
        ("lag", formats.seconds(trust.loop_lag_p99)),
        ("Little", f"{formats.signed_percent(trust.littles_law_error):>6}"),
        ("tok", formats.signed_percent(trust.token_error)),
    ]
