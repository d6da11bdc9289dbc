"""Texts are cut between words, so that no part of a secret is left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from servetop.core.text.redaction import Redactor
from servetop.core.text.shorten import cut_short

KEY = "local-5up3r/S3cr3t+Pa55w0rd=="


def test_a_short_text_is_kept() -> None:
    assert cut_short("no such model", 13) == "no such model"


def test_a_long_text_is_cut_between_words() -> None:
    assert cut_short("no such model: llama", 17) == "no such model:…"
    assert cut_short("no such model", 8) == "no such…"


def test_a_text_without_blanks_in_another_script_is_cut_anywhere() -> None:
    assert cut_short("模型不存在请检查", 5) == "模型不存…"


@given(st.text(max_size=60), st.sampled_from([" ", '"', ":'", "=("]), st.integers(1, 80))
def test_no_part_of_a_secret_is_left_by_the_cut(before: str, mark: str, most: int) -> None:
    text = f"{before}{mark}{KEY}{mark} is not valid"
    shown = Redactor([KEY]).text(cut_short(text, most))
    assert KEY[:6] not in shown
    assert len(cut_short(text, most)) <= most


@given(st.text(), st.integers(1, 80))
def test_what_is_kept_is_the_beginning(text: str, most: int) -> None:
    shown = cut_short(text, most)
    assert shown == text or text.startswith(shown[:-1])
