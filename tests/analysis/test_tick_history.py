"""Ticks merge by addition; statistics at a time are a pure function of the ticks up to it."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.live_stats import engine_stats, live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.trust.trust import Trust
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.events import EngineSample
from servetop.core.histogram import LogHistogram
from servetop.core.tick import COUNTERS, HISTOGRAMS, OPTIONAL_COUNTERS, ClientTick, LoadGauges, Tick, merge_client_ticks


def client_tick(index: int, *, sent: int = 2, ttft: float = 0.1, in_flight: int = 4) -> ClientTick:
    return ClientTick(
        index=index,
        gauges=LoadGauges(stage=0, request_rate=8.0, in_flight=in_flight),
        due=2,
        sent=sent,
        ok=sent,
        output_tokens=100,
        prompt_tokens=50,
        ttft=LogHistogram.of([ttft] * sent),
        slip=LogHistogram.of([0.001] * sent),
        loop_lag=LogHistogram.of([0.0005] * 12),
    )


def sample(
    at: float, *, preemptions: float, tokens: float = 0.0, running: float = 3, waiting: float = 1
) -> EngineSample:
    return EngineSample(
        scrape_start=at - 0.01,
        scrape_end=at,
        running=running,
        waiting=waiting,
        preemptions_total=preemptions,
        generation_tokens_total=tokens,
    )


def test_every_counter_and_histogram_of_a_tick_is_merged() -> None:
    others = {"index", "gauges"}
    assert {field.name for field in dataclasses.fields(ClientTick)} == {
        *COUNTERS,
        *OPTIONAL_COUNTERS,
        *HISTOGRAMS,
    } | others


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8))
def test_merging_ticks_adds_their_counters_and_their_histograms(sent: list[int]) -> None:
    merged = merge_client_ticks([client_tick(0, sent=n) for n in sent])
    assert merged.sent == sum(sent)
    assert merged.ttft.count == sum(sent)
    assert merged.gauges.in_flight == 4 * len(sent) if len(sent) > 1 else 4


def test_a_sender_without_objectives_adds_nothing_to_those_of_others() -> None:
    judged, silent = dataclasses.replace(client_tick(0), ok=4, errors=1, good=3, good_due=2), ClientTick(index=0)
    merged = merge_client_ticks([judged, silent, judged])
    assert (merged.good, merged.good_due, merged.judged) == (6, 4, 10)
    assert (merge_client_ticks([silent, silent]).good, silent.judged) == (None, None)


def test_rates_are_counts_over_the_window_not_averages_of_rates() -> None:
    history = TickHistory(Tick(client=client_tick(i, sent=0 if i < 20 else 4)) for i in range(40))
    stats = live_stats(history, 10.0, window=10.0)
    assert stats.rates.sent == pytest.approx(8.0)
    assert stats.totals.sent == 80


def test_a_partial_window_is_divided_by_its_own_length() -> None:
    history = TickHistory(Tick(client=client_tick(i)) for i in range(4))
    assert live_stats(history, 1.0, window=10.0).rates.sent == pytest.approx(8.0)


def test_statistics_at_a_time_do_not_change_with_later_ticks() -> None:
    ticks = [Tick(client=client_tick(i, ttft=0.1 * (i + 1)), engine=sample(i / 4, preemptions=i)) for i in range(40)]
    before, after = TickHistory(ticks[:20]), TickHistory(ticks)
    early, late = live_stats(before, 5.0), live_stats(after, 5.0)
    assert early.rates == late.rates
    assert early.latencies == late.latencies
    assert np.array_equal(early.series.latencies["ttft"], late.series.latencies["ttft"], equal_nan=True)


def test_charts_of_the_engine_alone_have_the_same_series_without_latencies() -> None:
    history = TickHistory(
        [Tick(client=client_tick(n), engine=sample(n / 4 + 0.2, preemptions=n // 3)) for n in range(80)]
    )
    whole, engine = (compute(history, 18.0, span=8.0, columns=16) for compute in (live_stats, engine_stats))
    assert engine.series.latencies == {}
    for name in ("times", "running", "waiting", "preemptions", "in_flight", "sent"):
        assert np.array_equal(getattr(engine.series, name), getattr(whole.series, name))
    assert engine.ttft.engine_queue == whole.ttft.engine_queue == pytest.approx(0.1)
    assert engine_stats(history, 0.0, span=8.0, columns=16).series.times.size == 0


def test_a_decreasing_counter_means_a_restarted_engine_not_negative_preemptions() -> None:
    totals = [5.0, 8.0, 2.0, 3.0]  # restarted between the second and the third
    history = TickHistory(
        Tick(client=client_tick(i), engine=sample(i / 4, preemptions=total)) for i, total in enumerate(totals)
    )
    assert live_stats(history, 1.0).totals.preemptions == 0 + 3 + 2 + 1


def test_prefix_cache_hit_rates_exclude_the_time_before_the_run() -> None:
    """A server with an earlier hit rate of 3.9 %; this run's first second has no hits, its last second half."""
    counters = [(390.0, 10_000.0), *((390.0, 10_000.0 + 100 * n) for n in range(1, 5)), (590.0, 10_800.0)]
    samples = [
        dataclasses.replace(
            sample(index / 4, preemptions=0.0), prefix_cache_hits_total=hits, prefix_cache_queries_total=queries
        )
        for index, (hits, queries) in enumerate(counters)
    ]
    history = TickHistory(Tick(client=client_tick(i), engine=each) for i, each in enumerate(samples))
    early, late = live_stats(history, 1.25), live_stats(history, 1.5, window=0.25)
    assert early.totals.prefix_cache_hit_rate == 0.0
    assert late.rates.prefix_cache_hit_rate == pytest.approx(200 / 400)
    assert late.totals.prefix_cache_hit_rate == pytest.approx(200 / 800)
    assert math.isnan(live_stats(history, 0.25).totals.prefix_cache_hit_rate)


@given(st.lists(st.none() | st.sampled_from([0.0, 1.0, 5.0, math.nan]), max_size=8), st.integers(0, 8))
def test_appending_ticks_together_or_one_by_one_is_equivalent(totals: list[float | None], first: int) -> None:
    ticks = [
        Tick(client=client_tick(i), engine=None if total is None else sample(i / 4, preemptions=total))
        for i, total in enumerate(totals)
    ]
    singly, together = TickHistory(), TickHistory(ticks[:first])
    for tick in ticks:
        singly.append(tick)
    together.extend(ticks[first:])
    for name in ("preemptions", "sent", "in_flight", "running"):
        assert np.array_equal(singly.column(name), together.column(name), equal_nan=True)
    assert [singly.up_to(i / 8) for i in range(20)] == [sum(tick.end <= i / 8 for tick in ticks) for i in range(20)]


def test_metrics_that_are_not_exported_are_nan_and_never_zero() -> None:
    history = TickHistory(Tick(client=client_tick(i)) for i in range(8))
    stats = live_stats(history, 2.0)
    assert math.isnan(stats.totals.preemptions)
    assert math.isnan(stats.rates.preemptions)
    assert np.isnan(stats.series.kv_usage).all()


def test_littles_law_compares_the_engines_requests_with_the_clients() -> None:
    history = TickHistory(
        Tick(client=client_tick(i, in_flight=5), engine=sample(i / 4, preemptions=0)) for i in range(40)
    )
    assert live_stats(history, 10.0).trust.littles_law_error == pytest.approx(4 / 5 - 1)


def test_requests_in_the_engine_while_the_client_has_none_are_counted_apart() -> None:
    history = TickHistory(
        Tick(client=client_tick(i, in_flight=0), engine=sample(i / 4, preemptions=0)) for i in range(40)
    )
    found = live_stats(history, 10.0).trust
    assert found.foreign == 4.0
    assert math.isnan(found.littles_law_error)


def history_with_first_end_after(seconds: float, counted: Callable[[float], float]) -> TickHistory:
    """Ten seconds at 400 tokens/s; `counted` returns the engine's token counter at a time."""
    ticks = []
    for index in range(40):
        end = (index + 1) / 4
        ended = LogHistogram.of([100.0] if end > seconds else [])
        client = dataclasses.replace(client_tick(index), output_len=ended)
        ticks.append(Tick(client=client, engine=sample(end, preemptions=0, tokens=counted(end))))
    return TickHistory(ticks)


@pytest.mark.parametrize(
    ("counted", "error"),
    [
        (lambda at: 400 * at, 0.0),  # with every step
        (lambda at: 400 * max(0.0, at - 4), 0.0),  # at the end of each request
        (lambda at: 440 * at, 4290 / 4000 - 1),  # 4000: received from the tick of the first scrape to the last one's
        (lambda at: 360 * max(0.0, at - 4), 2160 / 2300 - 1),  # 2300: of the requests that ended between them
        (lambda at: 0.0, -1.0),
    ],
)
def test_tokens_are_compared_in_the_way_in_which_the_engine_counts(
    counted: Callable[[float], float], error: float
) -> None:
    history = history_with_first_end_after(4.0, counted)
    assert live_stats(history, 10.0).trust.token_error == pytest.approx(error)


def test_an_engine_that_counts_finished_requests_is_not_suspect_at_first() -> None:
    history = history_with_first_end_after(4.0, lambda at: 400 * max(0.0, at - 4))
    verdicts = {live_stats(history, instant / 4).trust.token_error for instant in range(1, 16)}
    assert all(math.isnan(error) for error in verdicts)


def test_chart_bins_stay_aligned_over_time() -> None:
    history = TickHistory(Tick(client=client_tick(i)) for i in range(100))
    first = live_stats(history, 20.0, span=10.0, columns=10).series.times
    second = live_stats(history, 20.25, span=10.0, columns=10).series.times
    assert set(second) <= set(first) | {21.0}
    assert first[-1] == 20.0


@pytest.mark.parametrize(
    ("trust", "verdict"),
    [
        (Trust(), TrustVerdict.UNKNOWN),
        (Trust(slip_p99=0.002, loop_lag_p99=0.001, offered_rate=8, sent_rate=8), TrustVerdict.OK),
        (Trust(slip_p99=0.5, loop_lag_p99=0.001, offered_rate=8, sent_rate=8), TrustVerdict.CLIENT_BOUND),
        (Trust(slip_p99=0.002, loop_lag_p99=0.001, offered_rate=8, sent_rate=6), TrustVerdict.CLIENT_BOUND),
        (Trust(slip_p99=0.002, loop_lag_p99=0.001, offered_rate=8, sent_rate=6, limited=True), TrustVerdict.OK),
        (Trust(slip_p99=0.002, loop_lag_p99=0.001, offered_rate=480, sent_rate=390, seconds=0.008), TrustVerdict.OK),
        (Trust(slip_p99=0.002, loop_lag_p99=0.001, offered_rate=8, sent_rate=6, seconds=10), TrustVerdict.CLIENT_BOUND),
        (Trust(slip_p99=0.002, loop_lag_p99=0.001, littles_law_error=-0.2), TrustVerdict.SUSPECT),
    ],
)
def test_the_verdict_is_the_worst_problem(trust: Trust, verdict: TrustVerdict) -> None:
    assert trust.verdict is verdict
    assert bool(trust.reasons) == (verdict in (TrustVerdict.CLIENT_BOUND, TrustVerdict.SUSPECT))


def test_a_closed_loop_is_judged_live_by_its_share_of_lateness() -> None:
    def trust_of(rate: float, *, limit: int | None = 8) -> Trust:
        gauges = LoadGauges(stage=0, request_rate=rate, max_concurrency=limit, in_flight=49)
        late, took, lag = (LogHistogram.of([seconds]) for seconds in (0.25, 9.8, 0.4))
        tick = ClientTick(index=0, gauges=gauges, slip=late, e2el=took, loop_lag=lag, chunks=200, stamped=199)
        ticks = [Tick(client=dataclasses.replace(tick, index=index)) for index in range(40)]
        return live_stats(TickHistory(ticks), 10.0).trust

    closed = trust_of(math.inf)
    assert closed.late_share == pytest.approx(0.02)
    assert (closed.stamped, closed.verdict) == (True, TrustVerdict.OK)
    for other in (trust_of(8.0), trust_of(math.inf, limit=None)):
        assert math.isnan(other.late_share)
        assert other.verdict is TrustVerdict.CLIENT_BOUND


def test_while_every_request_fails_the_verdict_is_no_figures() -> None:
    def failing(index: int, **fields: Any) -> Tick:
        slip = LogHistogram.of([0.001])
        return Tick(client=ClientTick(index=index, sent=2, due=2, errors=2, slip=slip, loop_lag=slip, **fields))

    assert live_stats(TickHistory(failing(index) for index in range(8)), 2.0).trust.verdict is TrustVerdict.NO_FIGURES
    some = [failing(index, ttft=LogHistogram.of([0.1])) for index in range(8)]
    assert live_stats(TickHistory(some), 2.0).trust.verdict is not TrustVerdict.NO_FIGURES


def test_requests_that_fail_before_they_are_sent_do_not_make_the_client_late() -> None:
    on_time = LogHistogram.of([0.001])

    def trust_of(errors: int) -> Trust:
        client = ClientTick(index=0, due=4, sent=2, ok=2, errors=errors, slip=on_time, loop_lag=on_time)
        ticks = [Tick(client=dataclasses.replace(client, index=index)) for index in range(40)]
        return live_stats(TickHistory(ticks), 10.0).trust

    assert trust_of(2).verdict is TrustVerdict.OK
    assert trust_of(1).verdict is TrustVerdict.CLIENT_BOUND


def test_dropped_ticks_remain_in_the_totals_and_do_not_affect_the_window() -> None:
    ticks = [
        Tick(
            client=ClientTick(index=number, due=2, sent=2, ok=1, errors=number % 3 == 0, output_tokens=number),
            engine=EngineSample(scrape_start=number * 0.25, scrape_end=number * 0.25 + 0.01, preemptions_total=number),
        )
        for number in range(200)
    ]
    whole, short = TickHistory(ticks), TickHistory()
    for tick in ticks:
        short.append(tick)
        if len(short) > 100:
            short.drop_first(len(short) - 50)
    assert len(short) <= 100
    known, bounded = live_stats(whole, 50.0, span=1.0), live_stats(short, 50.0, span=1.0)
    assert bounded.totals == known.totals
    assert bounded.rates == known.rates


@pytest.mark.parametrize("at", [20.0, 20.1, 20.249, 20.25])
def test_the_window_has_as_many_ticks_between_two_of_their_ends_as_at_one(at: float) -> None:
    history = TickHistory([Tick(client=client_tick(number, sent=number)) for number in range(100)])
    last = 79 if at < 20.25 else 80
    assert live_stats(history, at).rates.sent == sum(range(last - 39, last + 1)) / 10.0
