"""The samples of several servers become one."""

import pytest

from servetop.core.events import EngineSample
from servetop.engines.metrics.sample_merge import CounterTotals, merge_samples


def test_a_counter_continues_through_a_restart() -> None:
    totals = CounterTotals()
    for value in (5.0, 8.0, 2.0, None, 3.0):
        totals.add(EngineSample(scrape_start=0, scrape_end=1, generation_tokens_total=value))
    assert totals.total("generation_tokens_total") == 11.0


def test_a_counter_that_was_never_reported_is_unknown() -> None:
    totals = CounterTotals()
    totals.add(EngineSample(scrape_start=0, scrape_end=1))
    assert totals.total("generation_tokens_total") is None


def test_gauges_are_added_and_unknown_ones_are_left_out() -> None:
    merged = merge_samples(
        [
            EngineSample(scrape_start=1, scrape_end=2, running=3),
            EngineSample(scrape_start=0, scrape_end=4, running=None),
        ],
        [],
    )
    assert (merged.running, merged.waiting) == (3, None)
    assert (merged.scrape_start, merged.scrape_end) == (0, 4)


def test_a_stopped_server_keeps_its_counters_in_the_sum() -> None:
    stopped = CounterTotals()
    stopped.add(EngineSample(scrape_start=0, scrape_end=1, requests_finished_total=7))
    assert (
        merge_samples([EngineSample(scrape_start=2, scrape_end=3)], [stopped, CounterTotals()]).requests_finished_total
        == 7
    )


@pytest.mark.parametrize(("blocks", "usage"), [((100, 300), 0.75), ((100, None), 0.5)])
def test_usage_is_weighted_if_all_servers_report_their_blocks(
    blocks: tuple[float | None, float | None], usage: float
) -> None:
    samples = [
        EngineSample(scrape_start=0, scrape_end=1, kv_usage=0.0, kv_blocks_total=blocks[0]),
        EngineSample(scrape_start=0, scrape_end=1, kv_usage=1.0, kv_blocks_total=blocks[1]),
    ]
    assert merge_samples(samples, []).kv_usage == usage
