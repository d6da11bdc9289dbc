"""Text from outside cannot do anything to a terminal but be read."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from servetop.tui.lines import Lines, fitted, joined, placard, row_width, spread
from servetop.tui.printable import printable, shortened


@pytest.mark.parametrize(
    ("hostile", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\after", "after"),
        ("\x9b2Jcleared", "cleared"),
        ("a\x00b\x08c", "abc"),
        ("safe\u202egnp.exe", "safegnp.exe"),
        ("tab\there", "tab    here"),
        ("[bold red]not markup[/]", "[bold red]not markup[/]"),
        ("Loading  10%\rLoading 100%\n", "Loading 100%"),
        ("two\nlines", "two lines"),
        ("ツール ready", "ツール ready"),
    ],
)
def test_escape_sequences_and_control_characters_are_taken_out(hostile: str, left: str) -> None:
    assert printable(hostile) == left


@given(st.text())
def test_whatever_comes_in_only_printable_characters_come_out(text: str) -> None:
    assert not [each for each in printable(text) if unicodedata.category(each) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]


@given(st.text(), st.integers(min_value=0, max_value=40))
def test_shortened_text_never_takes_more_cells_than_it_may(text: str, width: int) -> None:
    assert cell_len(shortened(printable(text), width)) <= width


def test_shortened_text_says_that_it_is() -> None:
    assert shortened("KV blocks", 5) == "KV b…"
    assert shortened("ツール", 5) == "ツー…"
    assert shortened("fits", 4) == "fits"


def test_rows_give_up_what_matters_least() -> None:
    parts = [[("first", "")], [("second", "")], [("third", "")]]
    assert Lines([joined(parts, width=14, gap=" ")]).plain == "first second"
    assert Lines([joined(parts, width=3, gap=" ")]).plain == "fi…"
    assert Lines([spread([("left part", "")], [("right", "")], width=12)]).plain == "left…  right"
    assert row_width(fitted([("12345", ""), ("67890", "")], 7)) == 7


def test_a_placard_stands_in_the_middle_and_is_broken_between_words() -> None:
    assert Lines(placard("not exported by TGI", width=15, height=3)).plain == "not exported by\n      TGI\n"
