"""The trust panel: whether the client's numbers are reliable."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.verdicts.trust import (
    AGREEMENT_LIMIT,
    LATE_SHARE_LIMIT,
    LOOP_LAG_LIMIT,
    SENT_SHARE_LIMIT,
    SLIP_LIMIT,
    CheckState,
    Trust,
    TrustCheck,
    TrustVerdict,
)
from servetop.tui.drawing import formats
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, joined
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame

SYMBOLS: dict[TrustVerdict, Run] = {
    TrustVerdict.OK: ("✓ ok", "good"),
    TrustVerdict.SUSPECT: ("▲ suspect", "warn"),
    TrustVerdict.CLIENT_BOUND: ("✖ client-bound", "bad"),
    TrustVerdict.NO_FIGURES: ("✖ no data", "bad"),
    TrustVerdict.UNKNOWN: ("· nothing sent", "muted"),
}


class TrustPanel(Panel):
    """The verdict, the checks behind it, and the reasons of those that failed."""

    shows_cursor = True

    def title(self, frame: Frame) -> Sequence[TextRow]:
        return [[("Trust ", "title"), SYMBOLS[frame.stats.trust.verdict]]]

    def watch_frame(self, frame: Frame | None) -> None:
        super().watch_frame(frame)
        verdict = TrustVerdict.UNKNOWN if frame is None else frame.stats.trust.verdict
        self.set_class(verdict is TrustVerdict.SUSPECT, "-suspect")
        self.set_class(verdict in (TrustVerdict.CLIENT_BOUND, TrustVerdict.NO_FIGURES), "-client-bound")

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        return draw_trust(frame.stats.trust, width, height)


def draw_trust(trust: Trust, width: int, height: int) -> list[TextRow]:
    """The reasons, then one line per check; two compact lines if there are few rows."""
    reasons: list[TextRow] = [fitted([("▲ " + reason, "warn")], width) for reason in trust.reasons]
    if height < 5:
        pairs = [[(f"{name} ", "muted"), (value, "strong")] for name, value in _short(trust)]
        compact: list[TextRow] = [
            joined(pairs[:2], width=width, gap="  "),
            joined(pairs[2:], width=width, gap="  "),
        ]
        return [*reasons, *compact][:height]
    table: list[TextRow] = [_row(*each, width=width) for each in _rows(trust)]
    return [*table, *reasons][:height] if height >= len(table) + len(reasons) else [*reasons, *table][:height]


def _rows(trust: Trust) -> list[tuple[str, str, TrustCheck, str]]:
    """Name, value, check and limit of each row."""
    checks = trust.checks
    law = checks["littles_law"].limit
    slip = ("slip_p99", formats.seconds(trust.slip_p99), f"≤ {formats.seconds(SLIP_LIMIT)}")
    late = ("late_share", formats.percent(trust.late_share), f"≤ {LATE_SHARE_LIMIT:.0%}")
    values = {
        **({"late in closed loop": late} if trust.closed else {"schedule slip p99": slip}),
        "loop lag p99": ("loop_lag_p99", formats.seconds(trust.loop_lag_p99), f"≤ {formats.seconds(LOOP_LAG_LIMIT)}"),
        "sent / offered": ("sent_share", formats.percent(min(trust.sent_share, 1.0)), f"≥ {SENT_SHARE_LIMIT:.0%}"),
        "Little's law": ("littles_law", formats.signed_percent(trust.littles_law_error), f"± {_percent(law)}"),
        "tokens engine/client": ("tokens", formats.signed_percent(trust.token_error), f"± {AGREEMENT_LIMIT:.0%}"),
    }
    return [(name, value, checks[check], limit) for name, (check, value, limit) in values.items()]


def _percent(limit: float) -> str:
    """`5%`, `10.5%`: never rounded to a limit other than the one in force."""
    return f"{limit * 100:.1f}".removesuffix(".0") + "%"


SIGNS: dict[CheckState, Run] = {
    CheckState.PASSED: ("✓ ", "good"),
    CheckState.BROKEN: ("▲ ", "warn"),
    CheckState.EXEMPT: ("· ", "muted"),
    CheckState.UNKNOWN: ("· ", "muted"),
}


def _row(name: str, value: str, check: TrustCheck, limit: str, *, width: int) -> TextRow:
    style = "warn" if check.state is CheckState.BROKEN else "strong"
    row: list[Run] = [SIGNS[check.state], (f"{name:<21}", "muted"), (f"{value:>8}", style)]
    return fitted([*row, (f"   {check.exemption or limit}", "faint")] if width >= 43 else row, width)


def _short(trust: Trust) -> list[tuple[str, str]]:
    return [
        ("slip", f"{formats.seconds(trust.slip_p99):>7}"),
        ("lag", formats.seconds(trust.loop_lag_p99)),
        ("Little", f"{formats.signed_percent(trust.littles_law_error):>6}"),
        ("tok", formats.signed_percent(trust.token_error)),
    ]
