"""The history of one of several servers from whole rows is that of its ticks made one after the other."""

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.fleet.replica_rows import replica_history
from servetop.analysis.fleet.replica_ticks import ReplicaTicks
from servetop.analysis.series.tick_history import ENGINE_DELTA_COLUMNS, GAUGE_COLUMNS, TickHistory
from servetop.core.events import EngineSample, ReplicaSample
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState, facts_text
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.merged.merged_sample import MergedSample
from servetop.core.merged.tick_rows import MergedTick, TickRow, TickRows
from servetop.core.tick import TICK_SECONDS, ClientTick, LoadGauges, Tick

STATES = st.sampled_from(list(ReplicaState))
ENGINES = st.sampled_from(
    [None, *(facts_text(EngineFacts(name="vllm", title="vLLM", through=url)) for url in ("", "http://prom:9090"))]
)
"""Servers that are read themselves, and one that is known through a Prometheus server."""
NUMBERS = st.none() | st.integers(0, 3000).map(float)
VALUES = {
    each.name: NUMBERS
    for each in dataclasses.fields(EngineSample)
    if each.name not in ("scrape_start", "scrape_end", "requests_by_reason")
}


@st.composite
def watch_rows(draw: st.DrawFn) -> list[TickRow]:
    """Draw the rows of a watch: merged ones before plain ones, in between, and none."""
    found: list[TickRow] = []
    index = -1
    for count in draw(st.lists(st.sampled_from([1, 1, 1, 8, 40]), max_size=8)):
        index += count
        tick = Tick(client=ClientTick(index=index, gauges=LoadGauges(stage=count)))
        found.append(tick if count == 1 else MergedTick(tick=tick, count=count, engine=None))
    return found


@st.composite
def server_samples(draw: st.DrawFn) -> list[ReplicaSample | MergedSample]:
    """Draw samples of a server in order of time, with gaps, and some that stand for several."""
    found: list[ReplicaSample | MergedSample] = []
    at, before = 0.0, None
    for count in draw(st.lists(st.sampled_from([1, 1, 2, 10]), max_size=8)):
        at += count * draw(st.sampled_from([0.25, 1.0, 1.1, 4.0]))
        fields = {name: draw(values) for name, values in VALUES.items()}
        sample = ReplicaSample(replica=0, scrape_start=at - 0.02, scrape_end=at - 0.01, **fields)
        peaks = {"running": draw(st.floats(0.0, 500.0))} if sample.running is not None else {}
        merged = MergedSample(sample=sample, count=count, before=before, peaks=peaks)
        found.append(sample if count == 1 else merged)
        before = draw(st.sampled_from([None, sample]))
    return found


@st.composite
def server_changes(draw: st.DrawFn) -> list[ReplicaChange]:
    times = sorted(draw(st.lists(st.floats(0.0, 30.0), max_size=4)))
    return [
        ReplicaChange(at=at, replica=0, name="gpu0", url="http://gpu0", state=draw(STATES), engine=draw(ENGINES))
        for at in times
    ]


@given(watch_rows(), server_samples(), server_changes())
def test_columns_and_ticks_are_those_of_one_tick_after_the_other(
    rows: list[TickRow], samples: list[ReplicaSample | MergedSample], changes: list[ReplicaChange]
) -> None:
    single = ReplicaTicks()
    plain = [one for each in samples for one in (each.samples() if isinstance(each, MergedSample) else [each])]
    single.add([each for each in plain if isinstance(each, ReplicaSample)], changes)
    expected = TickHistory(single.ticks(TickRows(rows)))
    found = replica_history(rows, samples, changes)
    assert [tick.index for tick in found.ticks] == [tick.index for tick in expected.ticks]
    assert [tick.engine for tick in found.ticks] == [tick.engine for tick in expected.ticks]
    assert [tick.client.gauges for tick in found.ticks] == [tick.client.gauges for tick in expected.ticks]
    for name in (*GAUGE_COLUMNS, *ENGINE_DELTA_COLUMNS, "throttled", "due"):
        np.testing.assert_allclose(found.column(name), expected.column(name), rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_sample_stands_for_the_server_for_three_seconds_and_only_while_it_responds() -> None:
    rows: list[TickRow] = [
        MergedTick(tick=Tick(client=ClientTick(index=39)), count=40, engine=None),
        *(Tick(client=ClientTick(index=index)) for index in range(40, 80)),
    ]
    samples = [ReplicaSample(replica=0, scrape_start=at, scrape_end=at, running=at) for at in (1.0, 2.0, 10.5, 11.5)]
    changes = [
        ReplicaChange(at=at, replica=0, name="gpu0", url="http://gpu0", state=state)
        for at, state in ((0.0, ReplicaState.ATTACHED), (12.0, ReplicaState.GONE))
    ]
    history = replica_history(rows, samples, changes)
    running = dict(zip((np.arange(80) + 1) * TICK_SECONDS, history.column("running"), strict=True))
    assert [running[at] for at in (1.0, 1.75, 2.0, 5.0, 10.5, 11.75)] == [1.0, 1.0, 2.0, 2.0, 10.5, 11.5]
    assert np.isnan([running[at] for at in (0.75, 5.25, 10.25, 12.0, 20.0)]).all()
