"""The parts of the time to first token add up to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.ttft_breakdown import TtftBreakdown, ttft_breakdown
from servetop.core.events import EngineSample
from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick, Tick


def tick(index: int, *, sent_after: float, ttft: float, engine: EngineSample | None) -> Tick:
    """A tick in which two requests received their first token `ttft` after they were sent."""
    client = ClientTick(
        index=index, ttft=LogHistogram.of([ttft, ttft]), ttft_due=LogHistogram.of([sent_after + ttft] * 2)
    )
    return Tick(client=client, engine=engine)


def exported(requests: int, *, first: float, queue: float, prefill: float, at: float = math.inf) -> EngineSample:
    """The engine's sample after a number of requests with these times each."""
    return EngineSample(
        scrape_start=at, scrape_end=at,
        first_token_seconds_total=first * requests, first_tokens_total=requests,
        queue_seconds_total=queue * requests, queued_requests_total=requests,
        prefill_seconds_total=prefill * requests, prefilled_requests_total=requests,
    )  # fmt: skip


def test_each_part_is_a_mean_of_the_window_and_the_rest_is_unexplained() -> None:
    samples = [exported(10 + 2 * number, first=0.9, queue=0.6, prefill=0.2) for number in range(4)]
    history = TickHistory(tick(n, sent_after=0.5, ttft=1.0, engine=sample) for n, sample in enumerate(samples))
    parts = ttft_breakdown(history, 1, 4)
    assert parts.requests == 6
    assert parts.total == pytest.approx(1.5)
    assert parts.parts == pytest.approx((0.5, 0.1, 0.6, 0.2))
    assert parts.unexplained == pytest.approx(0.1)


def test_the_time_of_parts_that_are_not_exported_is_unexplained() -> None:
    bare = EngineSample(scrape_start=0.0, scrape_end=0.0)
    for engine in (bare, None):
        parts = ttft_breakdown(TickHistory([tick(0, sent_after=0.5, ttft=1.0, engine=engine)]), 0, 1)
        assert parts.client_queue == pytest.approx(0.5)
        assert all(math.isnan(part) for part in parts.parts[1:])
        assert parts.unexplained == pytest.approx(1.0)


def test_a_scrape_at_the_start_of_a_tick_is_compared_with_the_previous_ticks() -> None:
    """TTFT doubles each tick; the engine's TTFT is 0.1 s shorter than the client's, and exported one tick later."""
    ttfts = [1.0, 2.0, 4.0, 8.0]
    summed = [0.0, *(sum(2 * (each - 0.1) for each in ttfts[: number + 1]) for number in range(3))]
    samples = [
        EngineSample(
            scrape_start=number * 0.25, scrape_end=number * 0.25,
            first_token_seconds_total=seconds, first_tokens_total=2 * number,
        )
        for number, seconds in enumerate(summed)
    ]  # fmt: skip
    ticks = [
        tick(number, sent_after=0.0, ttft=ttft, engine=sample)
        for number, (ttft, sample) in enumerate(zip(ttfts, samples, strict=True))
    ]
    assert ttft_breakdown(TickHistory(ticks), 1, 4).network == pytest.approx(0.1)


@pytest.mark.parametrize(("queue", "prefill"), [(0.1, 0.1), (4.0, 0.7)])
def test_queue_and_prefill_of_other_requests_are_not_used(queue: float, prefill: float) -> None:
    """The engine exports them at a request's end: while a queue grows, they belong to requests that hardly waited."""
    samples = [exported(10 + 2 * number, first=2.9, queue=queue, prefill=prefill) for number in range(4)]
    history = TickHistory(tick(n, sent_after=0.5, ttft=3.0, engine=sample) for n, sample in enumerate(samples))
    parts = ttft_breakdown(history, 1, 4)
    assert not parts.is_split
    assert parts.parts == pytest.approx((0.5, 0.1, 2.9))
    assert (parts.total, parts.unexplained) == pytest.approx((3.5, 0.0))


def test_time_at_an_engine_that_has_not_finished_any_request_is_one_part() -> None:
    waiting = EngineSample(
        scrape_start=0.0, scrape_end=0.0, first_token_seconds_total=0.0, first_tokens_total=0,
        queue_seconds_total=0.0, queued_requests_total=0, prefill_seconds_total=0.0, prefilled_requests_total=0,
    )  # fmt: skip
    samples = [waiting, replace(waiting, first_token_seconds_total=1.8, first_tokens_total=2)]
    history = TickHistory(
        tick(n, sent_after=0.0, ttft=1.0, engine=replace(sample, scrape_start=math.inf, scrape_end=math.inf))
        for n, sample in enumerate(samples)
    )
    parts = ttft_breakdown(history, 0, 2)
    assert not parts.is_split
    assert parts.at_engine == pytest.approx(0.9)
    assert parts.unexplained == pytest.approx(0.0)


def test_an_engine_that_restarted_counts_from_zero_again() -> None:
    samples = [exported(100, first=2.0, queue=1.0, prefill=0.5), exported(4, first=0.9, queue=0.5, prefill=0.3)]
    history = TickHistory(tick(n, sent_after=0.0, ttft=1.0, engine=sample) for n, sample in enumerate(samples))
    assert ttft_breakdown(history, 0, 2).engine_queue == pytest.approx(0.5)


def test_a_window_without_a_first_token_has_no_parts() -> None:
    assert ttft_breakdown(TickHistory([Tick(client=ClientTick(index=0))]), 0, 1) == TtftBreakdown()


def growing(
    waiting: Sequence[float | None], *, queue: float, first: float = 2.0, prefill: float = 0.2
) -> TtftBreakdown:
    """The breakdown of ticks with two first tokens each, 2.1 s after sending, and so many requests waiting."""
    samples = [
        replace(exported(10 + 2 * number, first=first, queue=queue, prefill=prefill), waiting=each)
        for number, each in enumerate(waiting)
    ]
    history = TickHistory(tick(n, sent_after=0.5, ttft=2.1, engine=sample) for n, sample in enumerate(samples))
    return ttft_breakdown(history, 1, len(samples))


@pytest.mark.parametrize("queue", [0.1, 1.6, 4.0])
def test_the_queue_comes_from_waiting_requests_while_reported_times_are_of_earlier_ones(queue: float) -> None:
    """On average 12 requests wait, and eight get their first token in 1.25 s: Little's law accounts for the 1.8 s."""
    parts = growing([8.0, 10.0, 12.0, 14.0, 16.0], queue=queue)
    assert parts.parts == pytest.approx((0.5, 0.1, 1.8, 0.2))
    assert parts.queue_from == 12.0
    assert parts.unexplained == pytest.approx(0.0)


def test_reported_times_that_add_up_are_used() -> None:
    parts = growing([8.0, 10.0, 12.0, 14.0, 16.0], queue=1.75)
    assert parts.engine_queue == pytest.approx(1.75)
    assert math.isnan(parts.queue_from)


def test_a_wait_that_no_queue_accounts_for_is_not_called_a_queue() -> None:
    for waiting in (0.0, None):
        assert not growing([waiting] * 5, queue=0.1).is_split
    short = growing([2.0] * 5, queue=0.1)
    assert short.engine_queue == pytest.approx(2.0 * 1.25 / 8)
    assert short.unexplained == pytest.approx(1.8 - short.engine_queue)


def test_waiting_requests_are_all_that_some_engines_export() -> None:
    bare = [EngineSample(scrape_start=0.0, scrape_end=0.0, waiting=6.0)] * 5
    history = TickHistory(tick(n, sent_after=0.0, ttft=1.0, engine=sample) for n, sample in enumerate(bare))
    parts = ttft_breakdown(history, 1, 5)
    assert (parts.engine_queue, parts.unexplained) == pytest.approx((0.75, 0.25))


def test_requests_that_wait_for_their_first_token_are_the_last_ones_sent() -> None:
    """Four are sent per tick and one gets its first token; of the last tick's, none failed."""
    ticks = [
        Tick(client=ClientTick(index=n, sent=4, errors=int(n == 2), ttft=LogHistogram.of([0.1]))) for n in range(4)
    ]
    parts = ttft_breakdown(TickHistory(ticks), 0, 4)
    assert parts.pending == 11
    assert parts.pending_age == pytest.approx((4 * 0.0 + 4 * 0.25 + 3 * 0.5) / 11)


times = st.floats(0.0, 100.0)


@given(wait=times, ttft=times, first=times, queue=times, prefill=times, waiting=times | st.none())
def test_the_parts_always_add_up_to_the_whole(
    wait: float, ttft: float, first: float, queue: float, prefill: float, waiting: float | None
) -> None:
    samples = [
        replace(exported(number, first=first, queue=queue, prefill=prefill), waiting=waiting) for number in (0, 3)
    ]
    history = TickHistory(tick(n, sent_after=wait, ttft=ttft, engine=sample) for n, sample in enumerate(samples))
    parts = ttft_breakdown(history, 0, 2)
    assert parts.known + parts.unexplained == pytest.approx(parts.total)
    assert min(each for each in (*parts.parts, parts.unexplained) if not math.isnan(each)) >= 0


def test_times_reported_with_each_response_take_precedence_over_averages() -> None:
    """The averages include other clients' requests; llama.cpp reports prefill with each response, and no queue time."""
    samples = [exported(10 + 2 * number, first=0.9, queue=0.6, prefill=0.2) for number in range(4)]
    history = TickHistory(
        replace(each, client=replace(each.client, server_prefill=LogHistogram.of([0.05, 0.15])))
        for each in (tick(n, sent_after=0.5, ttft=1.0, engine=sample) for n, sample in enumerate(samples))
    )
    parts = ttft_breakdown(history, 1, 4)
    assert (parts.engine_queue, parts.prefill) == pytest.approx((0.6, 0.1))
    assert parts.unexplained == pytest.approx(0.2)
