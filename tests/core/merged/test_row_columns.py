"""The columns of rows that stand for several ticks are those of the ticks made from them."""

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.bounds import bounded
from servetop.core.events import EngineSample
from servetop.core.merged.merged_sample import MergedSample
from servetop.core.merged.row_columns import RowColumns
from servetop.core.merged.tick_rows import MergedTick, TickRow, TickRows
from servetop.core.tick import ClientTick, LoadGauges, Tick

VALUES = st.one_of(st.none(), st.floats(0.0, 1e6), st.integers(0, 3000).map(float))
FIELDS = [each.name for each in dataclasses.fields(EngineSample)]


@st.composite
def merged_rows(draw: st.DrawFn) -> list[TickRow]:
    """Draw consecutive rows with any counters and gauges; some have a row before, and some have maxima."""
    found: list[TickRow] = []
    index, before = 999, None
    for count in draw(st.lists(st.sampled_from([1, 2, 5, 40]), min_size=1, max_size=5)):
        index += count
        at = (index + 1) * 0.25
        fields = {name: draw(VALUES) for name in FIELDS if not name.startswith("scrape")}
        engine = draw(st.none() | st.just(EngineSample(scrape_start=at - 0.02, scrape_end=at - 0.01, **fields)))
        peaks = {"running": draw(st.floats(0.0, 500.0))} if engine is not None and engine.running is not None else {}
        tick = Tick(client=ClientTick(index=index, gauges=LoadGauges(stage=count)), engine=engine)
        merged = None if engine is None else MergedSample(sample=engine, count=count, before=before, peaks=peaks)
        found.append(tick if count == 1 else MergedTick(tick=tick, count=count, engine=merged))
        before = draw(st.sampled_from([None, engine]))
    return found


@given(merged_rows())
def test_a_column_has_the_value_of_each_tick(rows: list[TickRow]) -> None:
    columns, ticks = RowColumns(rows), TickRows(rows)
    assert len(columns) == len(ticks)
    assert columns.indexes.tolist() == [tick.index for tick in ticks]
    for name in FIELDS:
        expected = [np.nan if tick.engine is None else bounded(getattr(tick.engine, name)) for tick in ticks]
        np.testing.assert_allclose(columns.engine(name), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(
        columns.client(lambda client: float(client.gauges.stage)), [tick.client.gauges.stage for tick in ticks]
    )
