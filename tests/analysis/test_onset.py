"""Whether a cause is named `from` its onset, or `by` it because it may have begun before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.onset import onset_text
from servetop.analysis.diagnosis.overload import Overload, overloads
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import RunCause, RunVerdict
from servetop.core.histogram import LogHistogram
from servetop.core.tick import Tick
from tests.analysis.story_runs import QUEUE, SLOTS, ramp, record_from, story_from

OBJECTIVE = {"ttft": 0.5}
OVERLOAD = overloads(record_from(ramp(waiting=QUEUE)).episodes)[0]


def _overload_since(run: RunRecord, onset: float) -> str:
    return onset_text(run, RunVerdict(cause=RunCause.UNKNOWN, onset=onset, main=OVERLOAD))


def _one_missed(ticks: list[Tick], position: int) -> list[Tick]:
    """The same ticks, in one of which a request misses its objective."""
    client = ticks[position].client
    missed = replace(client, ttft_due=LogHistogram.of([0.9]), ok=1, good=0, good_due=0)
    return [*ticks[:position], replace(ticks[position], client=missed), *ticks[position + 1 :]]


@pytest.mark.parametrize(("early", "since"), [(0.0, "from"), (2.0, "from"), (3.0, "by")])
def test_an_overload_after_earlier_signs_has_begun_by_its_onset(early: float, since: str) -> None:
    ticks = ramp(waiting=[0.0] * 2 + [early] + [0.0] * 20 + list(QUEUE[5:-5]), kv=0.9, running=SLOTS)
    assert f" {since} 0:" in story_from(ticks, goodput=OBJECTIVE).headline


def test_where_waiting_is_unknown_an_early_miss_is_a_sign() -> None:
    ticks = ramp(waiting=[0.0] * 25, running=SLOTS)
    unseen = [tick if tick.engine is None else replace(tick, engine=None) for tick in ticks]
    missed = record_from(_one_missed(unseen, 8), goodput=OBJECTIVE)
    assert _overload_since(record_from(ticks, goodput=OBJECTIVE), 20.0) == " from 0:20"
    assert _overload_since(record_from(unseen, goodput=OBJECTIVE), 20.0) == " from 0:20"
    assert _overload_since(missed, 20.0) == " by 0:20"
    assert _overload_since(missed, 10.0) == " from 0:10"


def test_a_pause_after_earlier_misses_has_begun_by_its_onset() -> None:
    ticks = ramp(waiting=[0.0] * 25, running=SLOTS)
    stalled = RunVerdict(cause=RunCause.STALL, onset=20.0)
    assert onset_text(record_from(ticks, goodput=OBJECTIVE), stalled) == " from 0:20"
    assert onset_text(record_from(_one_missed(ticks, 8), goodput=OBJECTIVE), stalled) == " by 0:20"


@pytest.mark.parametrize(("first", "said"), [(18.0, " from 0:20"), (5.0, " by 0:20")])
def test_an_earlier_failure_leaves_the_onset_of_the_failures_open(first: float, said: str) -> None:
    ticks = [
        replace(tick, client=replace(tick.client, errors=1, ok=2)) if tick.start == first else tick
        for tick in ramp(waiting=[0.0] * 25)
    ]
    assert onset_text(record_from(ticks), RunVerdict(cause=RunCause.FAILING, onset=20.0)) == said


@pytest.mark.parametrize(("waited", "said"), [(0.0, " from 0:20"), (5.0, " by 0:20")])
def test_a_growth_in_flight_may_be_older_than_the_window_in_which_it_is_seen(waited: float, said: str) -> None:
    grows = Episode(kind=EpisodeKind.IN_FLIGHT, begin=20.0, detected_at=40.0, worst=90.0, worst_at=40.0)
    run = record_from(ramp(waiting=[0.0] * 15 + [waited] + [0.0] * 30), goodput=OBJECTIVE)
    verdict = RunVerdict(cause=RunCause.RATE, onset=20.0, main=Overload(episodes=(grows,)))
    assert onset_text(run, verdict) == said


def test_without_an_onset_none_is_named() -> None:
    assert onset_text(record_from(ramp(waiting=[0.0] * 25)), RunVerdict(cause=RunCause.HEADROOM)) == ""


@pytest.mark.parametrize(("usual", "said"), [(0.05, " from 0:20"), (0.3, "")])
def test_slow_first_tokens_before_an_overload_leave_its_onset_open(usual: float, said: str) -> None:
    """Without the engine's queue, prompts that take long to compute look like ones that wait."""
    ticks = [
        replace(tick, engine=None, client=replace(tick.client, ttft_due=LogHistogram.of([usual] * 3)))
        for tick in ramp(waiting=[0.0] * 25, running=SLOTS)
    ]
    waits = Episode(kind=EpisodeKind.AWAITING, begin=20.0, detected_at=22.0, worst=9.0, worst_at=24.0)
    verdict = RunVerdict(cause=RunCause.UNKNOWN, onset=20.0, main=Overload(episodes=(waits,)))
    assert onset_text(record_from(ticks, goodput=OBJECTIVE), verdict) == said
