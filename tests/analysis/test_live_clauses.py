"""Nothing in the verdict of one time outlives the observations that it needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.diagnosis.live_clauses import VERDICTS, observed_now
from servetop.analysis.diagnosis.moment import Moment
from servetop.analysis.diagnosis.observation import Observation
from servetop.analysis.diagnosis.overload import Limit
from servetop.analysis.diagnosis.verdict_now import verdict_now
from servetop.analysis.engine_gauges import kv_usage
from tests.analysis.test_verdict_now import FACTS, FALLING_BEHIND, KEEPING_UP, SAMPLE, STAGE, stats_of

FIELDS: Mapping[Observation, str] = {
    Observation.QUEUE: "waiting", Observation.RUNNING: "running", Observation.KV: "kv_usage",
}  # fmt: skip
SAID_OF: Mapping[Observation, str] = {
    Observation.QUEUE: r"\d waiting|nothing waits|queue growing|batch-bound",
    Observation.RUNNING: r"running \d|batch-bound",
    Observation.KV: r"of blocks|KV \d|KV only|KV-bound(?!.*preemption)",
}
"""What can only be said with an observation, as a pattern of the text: not taken from the declarations."""


def moment_without(lost: set[Observation], limit: Limit | None) -> Moment:
    """A time of a run at an engine that does not export some values, in an overload by a limit, or in none."""
    fields: dict[str, Any] = {FIELDS[each]: None for each in lost}
    sample = replace(SAMPLE, kv_usage=0.99 if limit is Limit.KV else 0.5, waiting=20 if limit else 0)
    rates = replace(FALLING_BEHIND if limit else KEEPING_UP, preemptions=float("nan") if lost else 0.0)
    stats = stats_of(rates, engine=replace(sample, **fields))
    return Moment(
        stats=stats, facts=FACTS, stage=STAGE, load_since=10.0, kv_peak=kv_usage(stats.engine), limit=limit
    )  # fmt: skip


@pytest.mark.parametrize("limit", [None, *Limit])
@settings(deadline=None)
@given(lost=st.sets(st.sampled_from(list(FIELDS))))
def test_no_words_outlive_their_evidence(limit: Limit | None, lost: set[Observation]) -> None:
    found = verdict_now(moment_without(lost, limit))
    for each in lost:
        assert re.search(SAID_OF[each], found.line) is None, (each, found.line)
    if limit is not None:
        assert found.bottleneck is not Bottleneck.HEADROOM


@pytest.mark.parametrize("limit", [None, *Limit])
@settings(deadline=None)
@given(lost=st.sets(st.sampled_from(list(FIELDS))))
def test_a_verdict_has_the_observations_that_its_name_needs(limit: Limit | None, lost: set[Observation]) -> None:
    moment = moment_without(lost, limit)
    bottleneck = verdict_now(moment).bottleneck
    assert bottleneck not in VERDICTS or VERDICTS[bottleneck].is_supported(observed_now(moment))
