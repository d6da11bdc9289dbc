"""No statement outlives the observations that it needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.analysis.diagnosis import clauses
from servetop.analysis.diagnosis.clauses import CLAUSES, Phrase, supported
from servetop.analysis.diagnosis.evidence import observed
from servetop.analysis.diagnosis.observation import Observation
from servetop.analysis.story.story import Story
from servetop.core.tick import Tick
from tests.analysis.story_runs import QUEUE, SLOTS, facts_without, ramp, record_from, story_from

GAUGES: Mapping[Observation, tuple[str, ...]] = {
    Observation.QUEUE: ("waiting",),
    Observation.RUNNING: ("running",),
    Observation.KV: ("kv_usage", "kv_blocks_used"),
    Observation.PREEMPTIONS: ("preemptions_total",),
    Observation.BATCH_LIMIT: ("max_num_seqs",),
    Observation.KV_BLOCKS: (),
}
"""The values of a metrics page by the observation that is lost without them."""
SAID_OF: Mapping[Observation, str] = {
    Observation.QUEUE: r"the queue grows|nothing waits|no queue|\d+ waiting",
    Observation.KV: r"KV blocks at most|free KV|hold about|KV cache fills(?!.*preempt)",
    Observation.KV_BLOCKS: r"its [\d,]+ blocks",
    Observation.PREEMPTIONS: r"\d+ preemption|first preemption",
    Observation.BATCH_LIMIT: r"batch of \d+ is full",
    Observation.RUNNING: r"hold about|runs at most|batch of \d+ is full|free KV",
}
"""What can only be said with an observation, as a pattern of the text: not taken from the declarations."""
RUNS: Mapping[str, list[Tick]] = {
    "kv": ramp(waiting=QUEUE, kv=0.99, running=SLOTS),
    "batch": ramp(waiting=QUEUE, running=64, kv=0.2),
    "rate": ramp(waiting=QUEUE),
    "calm": ramp(waiting=[0.0] * 40),
}


def without(ticks: list[Tick], lost: set[Observation]) -> list[Tick]:
    """The same run at an engine that does not export some values."""
    fields: dict[str, Any] = {name: None for each in lost for name in GAUGES[each]}
    return [each if each.engine is None else replace(each, engine=replace(each.engine, **fields)) for each in ticks]


def said(ticks: list[Tick], lost: set[Observation]) -> Story:
    return story_from(
        without(ticks, lost), facts=facts_without(lost), batch_is_known=Observation.BATCH_LIMIT not in lost
    )


@pytest.mark.parametrize("kind", RUNS)
@settings(max_examples=30, deadline=None)
@given(lost=st.sets(st.sampled_from(list(GAUGES))))
def test_no_sentence_outlives_its_evidence(kind: str, lost: set[Observation]) -> None:
    story = said(RUNS[kind], lost)
    lines = [story.headline, *(line.text for line in story.lines)]
    for each in lost:
        found = [text for text in lines if each in SAID_OF and re.search(SAID_OF[each], text)]
        unexplained = [text for text in found if "unknown: the engine exports no" not in text]
        by_preemptions = each is Observation.KV and Observation.PREEMPTIONS not in lost
        assert unexplained == [] or by_preemptions, (each, unexplained)
    assert story.lines, "an overload without any evidence is still told by what the client saw"


@pytest.mark.parametrize("kind", RUNS)
def test_what_is_printed_is_declared(kind: str) -> None:
    record = record_from(RUNS[kind])
    known = observed(record) | {Observation.STEADY_WINDOW}
    story = said(RUNS[kind], set())
    for clause in (*story.clauses, *(each for line in story.lines for each in line.clauses)):
        assert clause in CLAUSES.values()
        assert clause.is_supported(known), clause.example


def test_the_strongest_phrase_with_its_evidence_is_printed() -> None:
    choices = [Phrase(clauses.BATCH_FULL, "the batch of 4 is full"), Phrase(clauses.QUEUE_GROWS, "the queue grows")]
    everything = frozenset({Observation.QUEUE, Observation.RUNNING, Observation.BATCH_LIMIT})
    assert [each.text for each in supported([choices], everything)] == ["the batch of 4 is full"]
    queue_of_all = frozenset({Observation.QUEUE, Observation.REPLICAS})
    assert [each.text for each in supported([choices], queue_of_all)] == ["the queue grows"]
    assert supported([choices], frozenset()) == []


def test_a_flat_running_count_is_a_batch_limit_only_if_it_is_not_exported() -> None:
    lost = {Observation.BATCH_LIMIT}
    texts = [line.text for line in said(RUNS["batch"], lost).lines]
    assert "the engine runs at most 64 at once at 12.0 req/s while requests wait: a batch limit of about 64" in texts
    assert "a batch limit of about" not in " ".join(line.text for line in said(RUNS["batch"], set()).lines)
