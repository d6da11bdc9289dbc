"""Times without a token: those of two seconds, and shorter ones that no prefill and no slow decoding explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.episode_fold import EpisodeFold
from servetop.analysis.diagnosis.signals import Signals
from servetop.analysis.diagnosis.stalls import due_in_pauses, generates, is_prefill, joined, silences
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import EngineSample
from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick, LoadGauges, Tick

PROMPT = 100
"""Tokens of a prompt, whose first token comes after 20 ms: 5,000 tokens/s."""


def tick(
    index: int, *, tokens: int = 20, started: int = 1, prompt: int = PROMPT, sent: int = 1, running: int = 4
) -> Tick:
    """A tick in which `started` requests have their first token."""
    client = ClientTick(
        index=index, due=sent, sent=sent, ok=started, output_tokens=tokens, prompt_tokens=started * prompt,
        ttft=LogHistogram.of([0.02] * started), ttft_due=LogHistogram.of([0.02] * started),
        gauges=LoadGauges(stage=0, request_rate=4.0, in_flight=running),
    )  # fmt: skip
    return Tick(client=client)


def silence(first: int, ticks: int, *, running: int = 4) -> list[Tick]:
    """Ticks without a token, in each of which a request arrives."""
    return [tick(first + n, tokens=0, started=0, running=running + n + 1) for n in range(ticks)]


def run(*parts: Sequence[Tick]) -> list[tuple[float, float | None, float]]:
    """Begin, end and worst of the stalls of these ticks, one by one."""
    fold, ticks = EpisodeFold(), [each for part in parts for each in part]
    for count in range(1, len(ticks) + 1):
        fold.update(TickHistory(ticks[:count]), None)
    return [(each.begin, each.end, each.worst) for each in fold.episodes if each.kind is EpisodeKind.STALL]


def usual(first: int, stop: int) -> list[Tick]:
    return [tick(index) for index in range(first, stop)]


@pytest.mark.parametrize(("ticks", "found"), [(3, []), (4, [(10.0, 11.0, 1.0)]), (6, [(10.0, 11.5, 1.5)])])
def test_a_pause_of_a_second_is_a_stall_if_requests_had_tokens_before(
    ticks: int, found: list[tuple[float, float, float]]
) -> None:
    after = [tick(40 + ticks, started=ticks + 1, tokens=60), *usual(41 + ticks, 80)]
    assert run(usual(0, 40), silence(40, ticks), after) == found


def test_several_pauses_are_several_stalls() -> None:
    pauses = [[*usual(first - 19, first), *silence(first, 5), tick(first + 5, started=6)] for first in (20, 45, 70)]
    assert [begin for begin, _, _ in run([tick(0)], *pauses, usual(76, 90))] == [5.0, 11.25, 17.5]


def test_pauses_with_one_tick_between_them_are_several_stalls() -> None:
    pauses = [[*silence(40 + 6 * n, 5), tick(45 + 6 * n, started=6)] for n in range(3)]
    found = run(usual(0, 40), *pauses, usual(58, 70))
    assert found == [(10.0, 11.25, 1.25), (11.5, 12.75, 1.25), (13.0, 14.25, 1.25)]


def test_the_prefill_of_long_prompts_is_no_pause() -> None:
    """8,000 tokens at 5,000 tokens/s."""
    after = [tick(46, started=4, prompt=2000), *usual(47, 60)]
    assert run(usual(0, 40), silence(40, 6), after) == []


def test_two_seconds_without_a_token_are_a_stall_whatever_comes_next() -> None:
    after = [tick(50, started=8, prompt=2000), *usual(51, 60)]
    assert run(usual(0, 40), silence(40, 10), after) == [(10.0, 12.5, 2.5)]


@pytest.mark.parametrize(("started", "prompt", "explained"), [(8, 2000, True), (8, 500, False), (11, PROMPT, False)])
def test_prompts_explain_the_time_of_their_prefill(started: int, prompt: int, *, explained: bool) -> None:
    """2.5 s without a token, and the fastest prefill before had 5,000 tokens/s."""
    ticks = [*usual(0, 40), *silence(40, 10), tick(50, started=started, prompt=prompt), *usual(51, 60)]
    assert is_prefill(TickHistory(ticks), 10.0, 12.5) is explained


def test_without_a_prefill_before_any_prompts_explain_it() -> None:
    assert is_prefill(TickHistory([*silence(0, 10), *usual(10, 20)]), 0.0, 2.5)


def test_requests_that_wait_for_their_first_token_are_not_paused() -> None:
    """Nothing else is in flight."""
    before = [tick(index, running=0) for index in range(40)]
    assert run(before, silence(40, 6, running=0), usual(46, 60)) == []


@pytest.mark.parametrize(("every", "stalls"), [(1, 1), (3, 0)])
def test_tokens_that_are_usually_far_apart_are_not_paused(every: int, stalls: int) -> None:
    """A slow model, or a proxy that collects tokens: of three ticks one has some."""
    before = [tick(n) if n % every == 0 else tick(n, tokens=0, started=0, sent=0) for n in range(60)]
    assert len(run(before, silence(60, 6), usual(66, 90))) == stalls


@settings(deadline=None)
@given(st.lists(st.sampled_from([0, 0, 0, 1, 20]), min_size=1, max_size=60), st.integers(1, 40))
def test_the_stalls_are_the_same_however_the_ticks_are_grouped(tokens: list[int], group: int) -> None:
    ticks = [tick(index, tokens=each, started=min(each, 1)) for index, each in enumerate(tokens)]
    grouped = EpisodeFold()
    for stop in range(group, len(ticks) + group, group):
        grouped.update(TickHistory(ticks[:stop]), None)
    kinds = [(each.begin, each.end, each.worst) for each in grouped.episodes if each.kind is EpisodeKind.STALL]
    assert kinds == run(ticks)


def test_silences_are_all_times_without_a_token_of_a_second() -> None:
    ticks = [*usual(0, 10), *silence(10, 5), *usual(15, 20), *silence(20, 3), *usual(23, 30)]
    history = TickHistory(ticks)
    assert silences(history, 0.0, 10.0) == [(2.5, 3.75)]
    assert silences(history, 4.0, 10.0) == []
    assert silences(history, 0.0, 0.0) == []


def test_joined_periods_do_not_overlap() -> None:
    assert joined([(5.0, 6.0), (1.0, 3.0), (2.0, 4.0), (4.0, 4.5)]) == [(1.0, 4.5), (5.0, 6.0)]
    assert joined([]) == []


def test_requests_of_a_pause_count_when_it_is_a_second_long() -> None:
    def counted(*parts: Sequence[Tick], streamed: bool = True) -> list[float]:
        ticks = [each for part in parts for each in part]
        signals = Signals.of(TickHistory(ticks), 0, len(ticks), facts=None)
        unknown = np.full(len(signals), np.nan)
        return list(due_in_pauses(signals if streamed else replace(signals, awaiting=unknown)))

    assert counted(usual(0, 2), silence(2, 6), usual(8, 10)) == [0, 0, 0, 0, 0, 4, 1, 1, 0, 0]
    assert counted(usual(0, 2), silence(2, 3), usual(5, 7)) == [0.0] * 7
    assert counted(usual(0, 2), silence(2, 6), usual(8, 10), streamed=False) == [0.0] * 10


@pytest.mark.parametrize(("totals", "grows"), [((5.0, 5.0), False), ((5.0, 9.0), True), ((5.0,), False), ((), False)])
def test_an_engine_that_generates_tokens_does_not_stall(totals: tuple[float, ...], *, grows: bool) -> None:
    """What it generated before the silence of two seconds says nothing."""
    pages = [EngineSample(scrape_start=0.5, scrape_end=0.6, generation_tokens_total=1.0)]
    starts = [1.25 + n for n in range(len(totals))]
    pages += [
        EngineSample(scrape_start=at, scrape_end=at + 0.1, generation_tokens_total=total)
        for at, total in zip(starts, totals, strict=True)
    ]
    ticks = [
        replace(each, engine=next((page for page in reversed(pages) if page.scrape_end <= each.end), None))
        for each in [*(tick(n) for n in range(4)), *silence(4, 8)]
    ]
    assert generates(TickHistory(ticks), 1.0, 3.0) is grows
