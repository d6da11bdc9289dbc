"""Text is shortened to terminal cells, and rows drop their least important parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.css.styles import RulesMap
from textual.style import Style
from textual.visual import RenderOptions

from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.text_runs import Lines, fitted, in_cells, joined, placard, row_width, shortened, spread


@given(st.text(), st.integers(min_value=0, max_value=40))
def test_shortened_text_never_takes_more_cells_than_it_may(text: str, width: int) -> None:
    assert cell_len(shortened(sanitize_line(text), width)) <= width


def test_shortened_text_ends_in_an_ellipsis() -> None:
    assert shortened("KV blocks", 5) == "KV b…"
    assert shortened("ツール", 5) == "ツー…"
    assert shortened("fits", 4) == "fits"


def test_rows_drop_the_least_important_parts() -> None:
    parts = [[("first", "")], [("second", "")], [("third", "")]]
    assert Lines([joined(parts, width=14, gap=" ")]).plain == "first second"
    assert Lines([joined(parts, width=3, gap=" ")]).plain == "fi…"
    assert Lines([spread([("left part", "")], [("right", "")], width=12)]).plain == "left…  right"
    assert row_width(fitted([("12345", ""), ("67890", "")], 7)) == 7


def test_a_placard_is_centred_and_wrapped_between_words() -> None:
    assert Lines(placard("not exported by TGI", width=15, height=3)).plain == "not exported by\n      TGI\n"


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("👩\u200d💻 ok", "👩💻 ok"),
        ("👍🏽", "👍"),
        ("❤\ufe0f", "❤"),
        ("🏴\U000e0067\U000e0062\U000e007f", "🏴"),
        ("ツール e\u0301 مدل می\u200cخواهم", "ツール e\u0301 مدل می\u200cخواهم"),
        ("\x1b[2Jplain", "plain"),
    ],
)
def test_cells_have_the_same_width_on_every_terminal(text: str, drawn: str) -> None:
    assert in_cells(text) == drawn
    assert cell_len(drawn) == sum(cell_len(each) for each in drawn)


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_a_row_is_exactly_as_wide_as_its_panel_whatever_is_in_it(text: str, width: int) -> None:
    options = RenderOptions(get_style=lambda _: Style(), rules=RulesMap())
    (strip,) = Lines([[(text, "")]]).render_strips(width, 1, Style(), options)
    assert strip.cell_length == cell_len(strip.text) == width
