"""A sample that stands for several: its means, maxima and counters are those of the samples made from it."""

import pytest

from servetop.core.events import EngineSample
from servetop.core.merged.merged_sample import MergedSample
from servetop.core.merged.sample_columns import HighestColumns, SampleColumns


def sample(at: float, **fields: float) -> EngineSample:
    return EngineSample(scrape_start=at - 0.01, scrape_end=at, **fields)


def test_gauges_have_their_mean_and_their_maximum_once() -> None:
    merged = MergedSample(sample=sample(10.0, running=8.0), count=40, peaks={"running": 20.0})
    values = [each.running or 0.0 for each in merged.samples()]
    assert sum(values) / 40 == pytest.approx(8.0)
    assert sorted(values)[-2:] == [pytest.approx(7.692, abs=0.001), 20.0]
    assert HighestColumns([merged]).column("running").tolist() == [20.0]


def test_counters_rise_from_the_sample_before_in_whole_numbers_and_seconds_evenly() -> None:
    before = sample(0.0, preemptions_total=5.0, queue_seconds_total=1.0)
    now = sample(10.0, preemptions_total=6.0, queue_seconds_total=2.0)
    made = MergedSample(sample=now, count=10, before=before).samples()
    assert [each.preemptions_total for each in made] == [5.0] * 9 + [6.0]
    assert [each.queue_seconds_total for each in made] == pytest.approx([1.0 + n / 10 for n in range(1, 11)])
    assert [each.scrape_end for each in made] == pytest.approx(range(1, 11))


def test_without_a_sample_before_counters_are_held_and_times_are_those_of_ten_seconds() -> None:
    made = MergedSample(sample=sample(10.0, preemptions_total=6.0), count=10).samples()
    assert {each.preemptions_total for each in made} == {6.0}
    assert [each.scrape_end for each in made] == pytest.approx(range(1, 11))


def test_without_a_sample_before_no_time_is_before_the_origin_of_the_run() -> None:
    merged = MergedSample(sample=sample(2.0), count=10)
    ends = [each.scrape_end for each in merged.samples()]
    assert ends == pytest.approx([n / 5 for n in range(1, 11)])
    assert list(SampleColumns([merged]).column("scrape_end")) == pytest.approx(ends)


def test_a_counter_that_fell_is_held() -> None:
    before, now = sample(0.0, preemptions_total=9.0), sample(10.0, preemptions_total=1.0)
    assert {each.preemptions_total for each in MergedSample(sample=now, count=10, before=before).samples()} == {1.0}
