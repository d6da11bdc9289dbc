"""Labels, help and numbers of the text formats survive the parsers of Prometheus, whatever the text contains."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from servetop.core.text.exposition_text import help_line, number_text, quoted_label
from servetop.core.text.sanitize import LONGEST_LINE, sanitize_line


@given(st.text())
def test_a_label_of_any_text_is_read_back_as_it_is_printed(text: str) -> None:
    line = f"servetop_x{{model={quoted_label(text)}}} 1\n"
    head = "# TYPE servetop_x gauge\n"
    families = [*plain(head + line), *openmetrics(f"{head}{line}# EOF\n")]  # type: ignore[no-untyped-call]
    assert len(families) == 2
    for family in families:
        (sample,) = family.samples
        assert sample.labels == {"model": sanitize_line(text)}


def test_a_label_that_is_cut_has_no_half_of_an_escape() -> None:
    text = "a" * (LONGEST_LINE - 1) + '"' * 10
    assert quoted_label(text) == '"' + "a" * (LONGEST_LINE - 1) + '\\"…"'


def test_help_is_one_line() -> None:
    assert help_line('a "b"\nc\\d') == "a 'b' c\\\\d"


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (0.25, "0.25"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")]
)
def test_numbers_are_written_as_both_formats_have_them(value: float, text: str) -> None:
    assert number_text(value) == text
