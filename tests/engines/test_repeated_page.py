"""A page with the same rows as another one is read as `scan` reads it, value for value."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.engines.metrics.prometheus_text import MAX_LINE_CHARS, scan
from servetop.engines.metrics.repeated_page import RepeatedPage

WANTED = frozenset({"a", "b_total", "c"})
PAGE = '# HELP a text\n# TYPE a gauge\na 1\nb_total{x="1",y="} 2"} 2\nother 3\nc{} 4 1700000000\n'


def scanned(page: str, wanted: frozenset[str] = WANTED) -> list[tuple[str, str, float]]:
    """Name, labels and value of each row; the order within a series is that of the page."""
    return sorted(
        (name, row.labels_text, 0.5 if math.isnan(row.value) else row.value)
        for name, rows in scan(page, wanted).items()
        for row in rows
    )


def repeated(first: str, second: str, wanted: frozenset[str] = WANTED) -> list[tuple[str, str, float]] | None:
    page = RepeatedPage.of(first, wanted)
    values = page.values(second)
    if values is None:
        return None
    return sorted(
        (name, row.labels_text, 0.5 if math.isnan(value) else value)
        for (name, row), value in zip(page.rows, values, strict=True)
    )


def test_only_the_values_of_a_page_with_the_same_rows_are_parsed() -> None:
    second = PAGE.replace("a 1", "a NaN").replace(" 2\n", " +Inf\n").replace("other 3", "other 9").replace(" 4 ", " 5 ")
    assert (
        repeated(PAGE, second)
        == scanned(second)
        == [
            ("a", "", 0.5),
            ("b_total", 'x="1",y="} 2"', math.inf),
            ("c", "", 5.0),
        ]
    )


@pytest.mark.parametrize(
    "second",
    [
        PAGE + "a 2\n",
        PAGE.replace("other 3", "a 3"),
        PAGE.replace('x="1"', 'x="2"'),
        PAGE.replace("a 1", 'a{x="1"} 1'),
        PAGE.replace("a 1", "a one"),
        PAGE.replace("a 1", "a 1_0"),
        PAGE.replace("a 1", "a"),
        PAGE.replace("a 1", f"a {'1' * 80}"),
        PAGE.replace("\nother", "\n\tother"),
        PAGE.rstrip("\n"),
        "",
    ],
)
def test_a_page_with_other_rows_is_recognised(second: str) -> None:
    assert RepeatedPage.of(PAGE, WANTED).values(second) is None


@pytest.mark.parametrize(
    "first",
    [
        "a one\n",
        " a 1\n",
        "a\t1\n",
        'a {x="1"} 1\n',
        f'a{{x="{"y" * MAX_LINE_CHARS}"}} 1\n',
        f'a{{x="{"y" * (MAX_LINE_CHARS - 20)}"}} 1\n',
    ],
)
def test_a_page_whose_rows_cannot_be_recognised_by_their_beginning_is_scanned_each_time(first: str) -> None:
    page = RepeatedPage.of(first, WANTED)
    assert page.values(first) is None
    assert [(name, row.labels_text, row.value) for name, row in page.rows] == scanned(first)


def test_the_page_of_a_real_vllm_is_repeated(vllm_data: Path) -> None:
    page = (vllm_data / "metrics_0.32.0.txt").read_text(encoding="utf-8")
    wanted = frozenset(
        {"vllm:kv_cache_usage_perc", "vllm:generation_tokens_total", "vllm:e2e_request_latency_seconds_bucket"}
    )
    assert len(scanned(page, wanted)) > 20
    assert repeated(page, page, wanted) == scanned(page, wanted)


_LINES = st.sampled_from(
    ["a", "a 1", "a  2", " a 3", "a\t4", "a 5 6", "a {", 'a{x="}"} 7', "a{} 8", "a{}9", "a 1_0", "ab 1"]
) | st.text(alphabet='ab_total{}" =,#\\1e-N\t', max_size=16)
_PAGES = st.lists(_LINES, max_size=6)


@given(_PAGES, _PAGES)
def test_any_page_is_read_as_it_is_scanned_or_recognised_as_another_one(first: list[str], second: list[str]) -> None:
    texts = ["\n".join(lines) for lines in (first, second)]
    found = RepeatedPage.of(texts[0], WANTED)
    assert sorted((name, row.labels_text) for name, row in found.rows) == [each[:2] for each in scanned(texts[0])]
    for text in texts:
        assert (values := repeated(texts[0], text)) is None or values == scanned(text)


@given(st.lists(_LINES, min_size=1, max_size=4), st.lists(st.floats() | st.integers(), min_size=4, max_size=4))
def test_values_alone_do_not_make_another_page(lines: list[str], numbers: list[float]) -> None:
    """Rows whose beginning is the same, with any numbers."""
    ends = [f"{line.rpartition(' ')[0]} {number}" for line, number in zip(lines, numbers, strict=False)]
    assert (values := repeated("\n".join(lines), "\n".join(ends))) is None or values == scanned("\n".join(ends))
