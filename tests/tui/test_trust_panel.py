"""The trust panel on narrow screens."""

from __future__ import annotations

import re

import pytest

from servetop.analysis.trust.trust import Trust
from servetop.tui.drawing.text_runs import Lines, TextRow
from servetop.tui.panels.live.trust import draw_trust

BEHIND = Trust(
    slip_p99=0.25, loop_lag_p99=0.2, offered_rate=64.0, sent_rate=60.0, littles_law_error=-0.266, in_flight=40.0
)  # fmt: skip


def text(rows: list[TextRow]) -> str:
    return Lines(rows).plain


@pytest.mark.parametrize("width", [20, 24, 36, 44])
def test_reasons_are_wrapped_between_words(width: int) -> None:
    shown = " ".join(row.strip() for row in text(draw_trust(BEHIND, width, 24)).split("\n"))
    for reason in BEHIND.reasons:
        assert f"▲ {reason}" in shown


@pytest.mark.parametrize("width", [20, 24, 36, 44])
def test_reasons_that_cannot_be_wrapped_end_after_a_word(width: int) -> None:
    rows = text(draw_trust(BEHIND, width, len(BEHIND.reasons))).split("\n")
    for row, reason in zip(rows, BEHIND.reasons, strict=True):
        shown = row.removesuffix("…").split()
        assert shown == f"▲ {reason}".split()[: len(shown)]
        assert len(shown) > 1


@pytest.mark.parametrize("height", [2, 3])
def test_reasons_without_a_row_are_counted(height: int) -> None:
    rows = text(draw_trust(BEHIND, 24, height)).split("\n")
    assert len(rows) == height
    assert rows[-1].strip() == f"… {len(BEHIND.reasons) - height + 1} more"


@pytest.mark.parametrize("width", range(16, 40))
def test_a_number_is_not_cut_off_from_its_unit(width: int) -> None:
    for row in text(draw_trust(BEHIND, width, len(BEHIND.reasons))).split("\n"):
        assert re.search(r"\d *…$", row.rstrip()) is None


def test_the_reason_why_a_check_does_not_apply_keeps_whole_words() -> None:
    held = Trust(slip_p99=0.001, loop_lag_p99=0.001, offered_rate=10, sent_rate=7, limited=True, concurrency_limit=13)
    assert "· sent 70.0 %, held back by…" in text(draw_trust(held, 32, 6)).split("\n")
