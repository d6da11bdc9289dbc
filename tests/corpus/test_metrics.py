"""servetop reads every metrics page of the corpus right, and row by row as prometheus_client does."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.core.bounds import LARGEST_VALUE
from servetop.engines.engine_registry import load_engine
from servetop.engines.metrics.metrics_reader import MetricMap
from servetop.engines.metrics.prometheus_text import scan
from tests.corpus.metrics_corpus import MetricsCase, load_metrics_cases, read_page
from tests.corpus.metrics_rows import own_rows, reference_rows
from tests.corpus.peers.differences import load_kinds

CASES = load_metrics_cases()
seeds = st.integers(0, 2**64)
cases = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
EXPLAINED = {name for kind in load_kinds("prometheus-client") for name in kind.cases}


@cases
def test_a_page_is_read_as_its_reading_says(case: MetricsCase) -> None:
    values, error = read_page(case, case.page)
    assert values == case.values, error
    assert all(model in error for model in case.other_models)
    assert "\n" not in error


@cases
def test_rows_are_those_of_prometheus_client_or_the_difference_is_explained(case: MetricsCase) -> None:
    assert (own_rows(case.page) != reference_rows(case.page)) == (case.name in EXPLAINED)


@cases
def test_a_page_cut_at_a_line_end_never_yields_more_than_its_rows(case: MetricsCase) -> None:
    rows = own_rows(case.page)
    lines = case.page.splitlines(keepends=True)
    for kept in range(len(lines)):
        read_page(case, b"".join(lines[:kept]))
        assert all(row in rows for row in own_rows(b"".join(lines[:kept])))


def cut(random: Random, page: bytes) -> bytes:
    return page[: random.randrange(len(page) + 1)]


def without_a_part(random: Random, page: bytes) -> bytes:
    low, high = sorted(random.randrange(len(page) + 1) for _ in range(2))
    return page[:low] + page[high:]


def with_lines_exchanged(random: Random, page: bytes) -> bytes:
    lines = page.splitlines(keepends=True)
    random.shuffle(lines)
    return b"".join(lines)


def with_other_bytes(random: Random, page: bytes) -> bytes:
    damaged = bytearray(page)
    for _ in range(random.randrange(1, 5)):
        if damaged:
            damaged[random.randrange(len(damaged))] = random.choice(b'\x00\r\n{}\\"=,# 9e_.-\xff\xef')
    return bytes(damaged)


def with_two_in_one(random: Random, page: bytes) -> bytes:
    return cut(random, page) + random.choice(CASES).page


@pytest.mark.parametrize("damage", [cut, without_a_part, with_lines_exchanged, with_other_bytes, with_two_in_one])
def test_a_damaged_page_yields_figures_within_bounds_and_rows_that_are_on_it(
    damage: Callable[[Random, bytes], bytes],
) -> None:
    @given(st.sampled_from(CASES), seeds)
    @settings(max_examples=150)
    def holds(case: MetricsCase, seed: int) -> None:
        page = damage(Random(seed), case.page)
        values, error = read_page(case, page)
        assert "\n" not in error
        assert all(math.isfinite(value) and 0 <= value <= LARGEST_VALUE for value in (values or {}).values())
        assert (values or {}).get("kv_usage", 0.0) <= 1
        lines = page.decode("utf-8", errors="replace").split("\n")
        for name, _, value in own_rows(page):
            assert any(name in line and number_is_on(line, value) for line in lines)

    holds()


def number_is_on(line: str, value: str) -> bool:
    """Whether one of the blank-separated words of a line is this number."""
    for word in line.replace("}", " ").split():
        try:
            if repr(float(word)) == value:
                return True
        except ValueError:
            continue
    return False


def test_a_page_without_the_engines_series_is_no_sample_of_zeros() -> None:
    @given(st.sampled_from([case for case in CASES if case.values]), seeds)
    @settings(max_examples=150)
    def holds(case: MetricsCase, seed: int) -> None:
        reader = load_engine(case.engine).metrics()
        if not isinstance(reader, MetricMap) or reader.lazy:
            return
        page = cut(Random(seed), case.page)
        text = page.decode("utf-8", errors="replace")
        if not scan(text, reader.series()):
            assert read_page(case, page)[0] is None

    holds()
