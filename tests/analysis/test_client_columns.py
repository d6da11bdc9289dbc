"""What a client measured in some ticks is read once for the histories of several servers."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.series.client_columns import COUNT_GETTERS, VALUE_GETTERS, ClientColumns
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import EngineSample
from servetop.core.tick import ClientTick, LoadGauges, Tick

CLIENTS = st.builds(
    ClientTick,
    index=st.just(0),
    sent=st.integers(0, 1),
    good=st.sampled_from([None, 2]),
    gauges=st.builds(LoadGauges, in_flight=st.integers(0, 1), request_rate=st.sampled_from([None, 4.0, math.inf])),
)


@given(st.lists(st.lists(CLIENTS, min_size=1, max_size=3), max_size=5))
def test_histories_with_columns_that_were_read_before_are_those_of_the_ticks(groups: list[list[ClientTick]]) -> None:
    given_columns, read = TickHistory(), TickHistory()
    for clients in groups:
        ticks = [Tick(client=each) for each in clients]
        given_columns.extend(ticks, clients=ClientColumns.of(clients))
        for tick in ticks:
            read.extend([tick])
    for name in (*COUNT_GETTERS, *VALUE_GETTERS):
        np.testing.assert_array_equal(given_columns.column(name), read.column(name))
    sent = [float(each.sent) for clients in groups for each in clients]
    assert read.column("sent").tolist() == sent


def test_a_sample_of_several_ticks_counts_in_the_first_of_them() -> None:
    samples = [EngineSample(scrape_start=at, scrape_end=at, preemptions_total=5.0 * at) for at in (1.0, 2.0)]
    engines = [None, samples[0], samples[0], samples[1], samples[1], samples[1]]
    history = TickHistory([Tick(client=ClientTick(index=at), engine=each) for at, each in enumerate(engines)])
    assert np.array_equal(history.column("preemptions"), [math.nan, 0.0, 0.0, 5.0, 0.0, 0.0], equal_nan=True)
    assert np.array_equal(history.column("scrape_end"), [math.nan, 1.0, 1.0, 2.0, 2.0, 2.0], equal_nan=True)
