"""When the limit of an overload began."""

from __future__ import annotations

import math

import pytest

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.overload import Limit, Overload
from servetop.analysis.diagnosis.overload_onset import overload_onset
from servetop.analysis.diagnosis.replica_limits import LimitedReplica, ReplicaLimits


def _overload(**begins: float) -> Overload:
    """Episodes of 30 s of these kinds, from these seconds on, in order of time."""
    return Overload(
        episodes=tuple(
            Episode(kind=EpisodeKind[name], begin=at, detected_at=at, end=at + 30.0, worst=1.0, worst_at=at)
            for name, at in sorted(begins.items(), key=lambda each: each[1])
        )
    )


def _second_of_two(full_since: float) -> ReplicaLimits:
    limited = LimitedReplica(number=1, limit=Limit.BATCH, seconds=30.0, batch=8.0, full_since=full_since)
    return ReplicaLimits(count=2, limited=(limited,), most_waiting=(0.0, 9.0), kv_peaks=(0.1, 0.1))


@pytest.mark.parametrize(
    ("limit", "begins", "onset"),
    [
        (Limit.RATE, {"BATCH": 20.0, "QUEUE": 30.0}, 30.0),
        (Limit.RATE, {"BATCH": 20.0, "QUEUE": 21.5}, 20.0),
        (Limit.KV, {"KV": 20.0, "PREEMPTIONS": 24.0, "QUEUE": 30.0}, 24.0),
        (Limit.BATCH, {"QUEUE": 30.0, "BATCH": 36.0}, 36.0),
        (Limit.LONG_PROMPTS, {"QUEUE": 30.0, "LONG_PROMPTS": 33.0}, 33.0),
    ],
    ids=["queue", "together", "preemptions", "full batch", "long prompts"],
)
def test_the_onset_is_when_the_limit_kept_requests_waiting(
    limit: Limit, begins: dict[str, float], onset: float
) -> None:
    assert overload_onset(limit, _overload(**begins), None) == onset


@pytest.mark.parametrize(("full_since", "onset"), [(42.0, 42.0), (math.nan, 30.0)])
def test_one_of_two_batches_is_the_limit_from_when_it_is_full(full_since: float, onset: float) -> None:
    """The sum of both, full from 50 s on, says nothing of the one that is named."""
    main = _overload(QUEUE=30.0, BATCH=50.0)
    assert overload_onset(Limit.BATCH, main, _second_of_two(full_since)) == onset
