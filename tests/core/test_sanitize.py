"""Untrusted text cannot control the terminal that prints it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from servetop.core.text.sanitize import LONGEST_LINE, break_ci_commands, sanitize_line, sanitize_log_line, sanitize_text

DANGEROUS = {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"}
BIDIRECTIONAL = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
INTRODUCERS = ["\x1b", "\x9b", "\x9d", "\x90", "\x9c", "\x07", "]", "[", "P", "\\", "52;c;", "31m", "2J"]
OTHERS = [
    "\r",
    "\n",
    "\x85",
    "\u2028",
    "\u202e",
    "\udc9b",
    "\U000e0041",
    "\U0001f3f4",
    "\u200d",
    "a",
    "0",
    "?",
    " ",
    "é",
]
anything = st.one_of(st.text(), st.lists(st.sampled_from(INTRODUCERS + OTHERS)).map("".join))


@pytest.mark.parametrize(
    ("hostile", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]52;c;cm0gLXJmIC8=\x1b\\copied", "copied"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\after", "after"),
        ("\x9d0;new title\x9cafter", "after"),
        ("\x90q#0\x9cafter", "after"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1bcreset", "reset"),
        ("\x1b(0charset", "charset"),
        ("a\x00b\x08c\x7fd\x84e", "abcde"),
        ("safe\u202egnp.exe", "safegnp.exe"),
        ("tab\there", "tab    here"),
        ("[bold red]not markup[/]", "[bold red]not markup[/]"),
        ("two\nlines\r\n", "two lines"),
        ("next\x85line\u2028line", "next line line"),
        ("hidden\rshown", "hidden shown"),
        ("\x1b]no end hides nothing", "no end hides nothing"),
        ("bytes \udcff\udcfe of a name", "bytes �� of a name"),
        ("private \ue000 \U000f0000, unassigned \u0378", "private � �, unassigned �"),
        ("tag\U000e0068\U000e0069 text", "tag text"),
        ("zero\ufeff\u2060\u00adwidth", "zerowidth"),
    ],
)
def test_escape_sequences_and_control_characters_are_taken_out(hostile: str, left: str) -> None:
    assert sanitize_line(hostile) == left


@pytest.mark.parametrize(
    "text",
    [
        "ツール ready · 模型 · 모델",
        "Zoë naïve e\u0301 a\u0308 q\u0323\u0307",
        "مدل می\u200cخواهم · עברית · हिन्दी क्\u200dष · ภาษาไทย · தமிழ்",
        "👩\u200d💻 👍🏽 ❤\ufe0f 🇪🇺 🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f 1\ufe0f\u20e3",
        "non-breaking\u00a0space and thin\u2009space",
        "⠿⣿ ▁▂▃ │ ─ × – … → ✓",
        "",
    ],
)
def test_text_of_all_languages_emoji_and_marks_stay(text: str) -> None:
    assert sanitize_line(text) == sanitize_text(text) == sanitize_log_line(text) == text


def test_text_of_several_lines_keeps_them() -> None:
    assert sanitize_text("one\n  \x1b[1mtwo\r\nthree\u2029\nfive\n") == "one\n  two\nthree\n\nfive\n"


def test_of_a_log_line_that_carriage_returns_overwrote_the_last_state_stays() -> None:
    assert sanitize_log_line("Loading  10%\rLoading 100%\n") == "Loading 100%"
    assert sanitize_log_line("Loading 100%\r\n") == "Loading 100%"


def test_an_unfinished_sequence_hides_nothing_of_the_lines_below_it() -> None:
    assert sanitize_text("model \x1b]0;\nexit code 1\nother \x07") == "model 0;\nexit code 1\nother "


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("::error::x", ": :error::x"),
        ("a\n \t ::stop-commands::x", "a\n \t : :stop-commands::x"),
        ("a ##[error]x", "a # #[error]x"),
        ("##vso[task.setvariable]x ##TeamCity[y]", "# #vso[task.setvariable]x # #TeamCity[y]"),
        ("a::b ## c [d] ###", "a::b ## c [d] ###"),
        ("###[group]", "## #[group]"),
        (":::x", ": ::x"),
    ],
)
def test_a_command_to_a_ci_runner_is_broken(text: str, left: str) -> None:
    assert break_ci_commands(text) == left


def test_a_line_of_millions_of_characters_is_cut() -> None:
    assert sanitize_line("x" * 10_000_000) == "x" * LONGEST_LINE + "…"
    assert len(sanitize_log_line("\x1b" * 10_000_000)) <= LONGEST_LINE + 1


@given(anything)
@example("\x1b\x1b[[0m")
@example("\x1b]\x1b]0;a\x07\x07")
@example("\x9b\x9b\x1b[\x9b0m")
def test_whatever_comes_in_only_printable_characters_come_out(text: str) -> None:
    for sanitized in (sanitize_line(text), sanitize_log_line(text), sanitize_text(text).replace("\n", "")):
        assert not [each for each in sanitized if unicodedata.category(each) in DANGEROUS]
        assert not BIDIRECTIONAL.intersection(sanitized)


@given(anything)
def test_sanitizing_again_changes_nothing(text: str) -> None:
    assert sanitize_line(sanitize_line(text)) == sanitize_line(text)
    assert sanitize_text(sanitize_text(text)) == sanitize_text(text)


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"])))
def test_letters_marks_numbers_and_symbols_all_stay(text: str) -> None:
    assert sanitize_text(text) == text
