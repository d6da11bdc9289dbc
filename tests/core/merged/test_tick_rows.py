"""Ticks in rows of several are the same sequence as a list of ticks, however they are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.events import EngineSample
from servetop.core.merged.merged_sample import MergedSample
from servetop.core.merged.tick_rows import MergedTick, TickRow, TickRows, first_index, last_tick, ticks_in
from servetop.core.tick import ClientTick, LoadGauges, Tick


def rows(counts: list[int]) -> list[TickRow]:
    """Return consecutive rows that stand for these numbers of ticks, 1 for a plain tick."""
    found: list[TickRow] = []
    index = -1
    for count in counts:
        index += count
        at = (index + 1) * 0.25
        engine = EngineSample(scrape_start=at - 0.02, scrape_end=at - 0.01, running=float(index))
        tick = Tick(client=ClientTick(index=index, gauges=LoadGauges(stage=3)), engine=engine)
        found.append(
            tick if count == 1 else MergedTick(tick=tick, count=count, engine=MergedSample(sample=engine, count=count))
        )
    return found


COUNTS = st.lists(st.sampled_from([1, 1, 2, 3, 7]), max_size=12)


@given(COUNTS, COUNTS, st.data())
def test_positions_are_those_of_ticks(early: list[int], later: list[int], data: st.DataObject) -> None:
    both = rows(early + later)
    sequence = TickRows(both[: len(early)])
    sequence.extend(TickRows(both[len(early) :]))
    total = sum(early + later)
    dropped = data.draw(st.integers(0, total))
    sequence.drop_first(dropped)
    expected = list(range(dropped, total))
    assert len(sequence) == len(expected)
    assert [tick.index for tick in sequence] == expected
    start, stop = sorted(data.draw(st.tuples(st.integers(0, total), st.integers(0, total))))
    assert [tick.index for tick in sequence[start:stop]] == expected[start:stop]
    assert [sequence[position].index for position in range(len(expected))] == expected
    assert [tick.index for tick in sequence[::-2]] == expected[::-2]
    sequence.extend(rows([1] * (total + 2))[total:])
    assert [tick.index for tick in sequence] == [*expected, total, total + 1]


def test_a_row_knows_its_first_and_last_tick() -> None:
    plain, merged = rows([1, 4])
    assert [(first_index(each), last_tick(each).index, ticks_in(each)) for each in (plain, merged)] == [
        (0, 0, 1),
        (1, 4, 4),
    ]


def test_the_ticks_of_a_row_have_its_settings_and_nothing_of_a_client() -> None:
    (merged,) = TickRows(rows([5])).rows
    assert isinstance(merged, MergedTick)
    assert {tick.client.gauges.stage for tick in merged.ticks()} == {3}
    assert {tick.client.ok for tick in merged.ticks()} == {0}


def test_ticks_without_metrics_have_no_sample() -> None:
    ticks = MergedTick(tick=Tick(client=ClientTick(index=9)), count=10, engine=None).ticks()
    assert [tick.engine for tick in ticks] == [None] * 10
    with pytest.raises(IndexError):
        TickRows(ticks)[10]
