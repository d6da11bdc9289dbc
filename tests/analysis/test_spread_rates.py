"""Rates in the bins of a chart of a watched server are the server's, however rare its metrics pages are."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.analysis.series.spread_rates import spread_rates
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from tests.watched_pages import TOKENS, paged_ticks

OUTPUT = "engine_output_tokens"


def rates(history: TickHistory, *, until: float, width: float = 1.0, column: str = OUTPUT) -> FloatArray:
    """The rates in bins of `width` seconds from second 0 on."""
    at = np.arange(0.0, until, width) + width / 2
    return spread_rates(history, [column], at=at, seconds=width)[column]


@pytest.mark.parametrize("every", [1.0, 1.3, 1.75, 15.0, 60.0])
def test_each_bin_between_two_pages_has_the_rate_of_the_server(every: float) -> None:
    found = rates(TickHistory(paged_ticks(every=every, seconds=200.0)), until=200.0)
    last = int(1 + (200 - 1) // every * every)
    assert np.isnan(found[0]), "before the first page"
    assert found[1:last].tolist() == pytest.approx([TOKENS] * (last - 1))
    assert np.isnan(found[last + 1 :]).all(), "what the server did after the last page is not known"


def test_bins_that_are_longer_than_the_time_between_pages_have_it_too() -> None:
    found = rates(TickHistory(paged_ticks(every=15.0, seconds=240.0)), until=240.0, width=20.0)
    assert found.tolist() == pytest.approx([TOKENS] * 12)


def test_while_a_server_is_not_read_it_has_no_rate_and_what_it_counted_meanwhile_is_in_no_spike() -> None:
    before, after = (paged_ticks(every=1.0, seconds=60.0, until=until) for until in (20.0, None))
    found = rates(TickHistory([*before[:160], *after[160:]]), until=60.0)
    assert np.isnan(found[23:40]).all()
    known = found[~np.isnan(found)]
    assert known.tolist() == pytest.approx([TOKENS] * known.size)
    assert known.size > 35


def test_what_a_server_does_not_export_has_no_rate_and_one_page_none_either() -> None:
    history = TickHistory(paged_ticks(every=15.0, seconds=60.0))
    assert np.isnan(rates(history, until=60.0, column="prefix_cache_hits")).all()
    assert np.isnan(rates(TickHistory(paged_ticks(every=60.0, seconds=30.0)), until=30.0)).all()
    assert rates(TickHistory(), until=0.0).size == 0
