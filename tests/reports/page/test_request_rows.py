"""The requests of a page give the summary's counts at the recorded limits, one by one or in bins."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from servetop.analysis.summary.request_metrics import request_summary
from servetop.reports.page.html_text import json_text
from servetop.reports.page.packed_columns import unpacked
from servetop.reports.page.request_rows import RequestRows, request_rows
from tests.reports.page.columns import request_columns

LIMITS = {"ttft": 0.15, "tpot": 0.02}


def good(rows: RequestRows, limits: Mapping[str, float]) -> int:
    """Count as the page's script does."""
    within = unpacked(rows.served) == 1
    for metric, limit in limits.items():
        within &= ~(unpacked(rows.columns[metric]).astype(np.float64) > limit)
    return int(within.sum()) if rows.counts is None else int(unpacked(rows.counts)[within].sum())


@pytest.mark.parametrize("most", [5_000, 400])
def test_at_the_recorded_limits_the_count_is_that_of_the_summary(most: int) -> None:
    requests = request_columns(2_000)
    rows = request_rows(requests, objectives=LIMITS, most=most)
    summary = request_summary(requests, goodput=LIMITS)
    assert summary.request_goodput is not None
    assert good(rows, LIMITS) / summary.duration == summary.request_goodput
    assert rows.ended == summary.num_prompts - summary.cancelled == 1_800
    assert (rows.bin_share is None) == (most == 5_000)


def test_without_limits_all_successful_requests_count() -> None:
    requests = request_columns(500)
    rows = request_rows(requests, objectives={})
    assert good(rows, {}) == request_summary(requests, goodput={}).completed == 400


def test_bins_are_fewer_and_within_their_width_of_the_exact_count() -> None:
    requests = request_columns(20_000)
    exact, binned = (request_rows(requests, objectives=LIMITS, most=most) for most in (20_000, 4_000))
    assert binned.bin_share is not None
    assert binned.rows < exact.rows
    for limit in (0.05, 0.1, 0.4):
        wider = limit * (1 + binned.bin_share) ** -1
        assert good(exact, {"ttft": wider}) <= good(binned, {"ttft": limit}) <= good(exact, {"ttft": limit})


def test_a_hundred_thousand_requests_take_little_of_a_page() -> None:
    rows = request_rows(request_columns(111_000), objectives=LIMITS)
    assert rows.rows == 99_900
    assert len(json_text(rows.as_data())) < 2_100_000


def test_each_row_has_its_stage() -> None:
    rows = request_rows(request_columns(100), objectives={})
    assert np.bincount(unpacked(rows.stages)).tolist() == [50, 40]
