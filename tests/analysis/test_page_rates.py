"""Rates of a watched server are differences of two metrics pages by the time between them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from servetop.analysis.live_stats import live_stats, watched_stats
from servetop.analysis.series.page_rates import Pages, WatchedHistory, page_rates, page_span
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.tick import TICK_SECONDS
from tests.watched_pages import TOKENS, paged_ticks


def rates(every: float, *, seconds: float = 150.0, window: float = 10.0, until: float | None = None) -> list[float]:
    """The rate of output tokens at each whole second, from second 1 on."""
    history = WatchedHistory(paged_ticks(every=every, seconds=seconds, until=until))
    found = page_rates(history, "engine_output_tokens", start=0, stop=len(history), window=window)
    return [float(each) for each in found[3 :: round(1 / TICK_SECONDS)]]


@pytest.mark.parametrize("every", [1.0, 1.75, 15.0, 60.0])
def test_the_rate_is_that_of_the_server_from_the_second_page_on_however_rare_pages_are(every: float) -> None:
    found = rates(every)
    second = math.ceil(1 + every) - 1
    assert np.isnan(found[:second]).all(), "one page has no rate"
    assert found[second:] == [pytest.approx(TOKENS)] * (150 - second)


def test_a_server_that_does_not_respond_has_no_rate_a_moment_later() -> None:
    found = rates(1.0, seconds=60.0, until=30.0)
    assert found[28] == pytest.approx(TOKENS)
    assert np.isnan(found[33:]).all(), "no rate, not a falling one"


def test_a_source_that_has_no_new_pages_has_no_rate_after_two_of_its_intervals() -> None:
    repeated = paged_ticks(every=15.0, seconds=32.0)
    last = repeated[-1].engine
    later = paged_ticks(every=15.0, seconds=100.0)[len(repeated) :]
    history = WatchedHistory([*repeated, *(replace(each, engine=last) for each in later)])
    assert page_span(history, history.up_to(60.0), window=10.0) is not None
    assert page_span(history, history.up_to(62.0), window=10.0) is None, "its page is of second 31"


def test_after_a_silence_the_next_page_is_expected_as_soon_as_before() -> None:
    before, after = paged_ticks(every=1.0, seconds=80.0, until=20.0), paged_ticks(every=1.0, seconds=80.0)
    history = WatchedHistory([*before[:240], *after[240:]])
    pages = Pages.of(history, start=0, stop=len(history))
    assert pages.intervals[1:] == pytest.approx(1.0)
    found = page_rates(history, "engine_output_tokens", start=0, stop=len(history), window=10.0)
    assert found[248] == pytest.approx(TOKENS), "the tokens of the silence are those of its seconds"


@pytest.mark.parametrize(("every", "window"), [(1.0, 10.0), (60.0, 60.0)])
def test_the_statistics_of_a_watch_have_these_rates_and_the_seconds_that_they_are_of(
    every: float, window: float
) -> None:
    history = WatchedHistory(paged_ticks(every=every, seconds=100.0))
    stats = watched_stats(history, 100.0)
    assert stats.rates.engine_output_tokens == pytest.approx(TOKENS)
    assert stats.rates.preemptions == 0.0
    assert (stats.window, stats.sample_interval) == (window, every)
    assert math.isnan(watched_stats(history, every).rates.engine_output_tokens)


def test_the_chart_has_the_rate_of_the_server_from_the_second_page_on() -> None:
    history = WatchedHistory(paged_ticks(every=1.0, seconds=40.0, until=30.0))
    series = live_stats(history, 40.0, span=40.0, columns=40).series
    shown = series.smoothed["engine_output_tokens"].mean
    assert shown[1:29] == pytest.approx(TOKENS)
    assert np.isnan(shown[[0, *range(34, 40)]]).all()
    assert series.engine_output_tokens[1:29] == pytest.approx(TOKENS)
    assert series.preemptions[1:29] == pytest.approx(0.0)


def test_a_run_counts_the_ticks_of_its_window() -> None:
    history = TickHistory(paged_ticks(every=1.0, seconds=5.0))
    assert live_stats(history, 5.0).rates.engine_output_tokens == pytest.approx(TOKENS * 4 / 5)
