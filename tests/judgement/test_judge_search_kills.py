"""The judgement of searches that were killed: moments within a transaction, what must be the same, and the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_evidence import Evidence, Probe, Purpose
from tests.judgement.judge_search_kills import (
    Found,
    JudgedKill,
    ended_until,
    judge_kills,
    repeated_loads,
    table,
)
from tests.judgement.recorded_search import Cut, cuts_of
from tests.judgement.searched_servers import LargestLoad
from tests.run.search.made_evidence import Kept, evidence_of

ANSWER = TierAnswer(kind=AnswerKind.FOUND, load=10.0, low=9.6, high=10.4, binding="")
KILL = JudgedKill(
    kind="KV-bound",
    server=21,
    cut=Cut(tick=400, within=0.5),
    purpose="measure",
    true=LargestLoad.of(10.1),
    killed=ANSWER,
    whole=ANSWER,
    kept=True,
    repeated=0,
    seconds=300.0,
    whole_seconds=280.0,
    budget=300.0,
)


def test_searches_that_are_killed_give_the_same_answer() -> None:
    found = judge_kills("batch-bound", 21, 1, budget=90.0, kills=4, true=LargestLoad.of(0.8468))
    assert len(found) >= 3
    assert [each for each in found if not (each.kept and each.repeated == 0 and each.in_budget)] == []
    assert len({(each.killed.low, each.killed.high) for each in found}) > 1, "the sessions after the kills differ"


def test_moments_are_drawn_from_a_seed() -> None:
    drawn = cuts_of(5, count=40, ticks=400)
    assert drawn == cuts_of(5, count=40, ticks=400)
    assert drawn != cuts_of(6, count=40, ticks=400)
    assert len({cut.tick for cut in drawn}) == 40
    assert 5 < sum(cut.within is not None for cut in drawn) < 35


def test_requests_that_ended_are_compared_one_by_one() -> None:
    evidence = evidence_of(Kept(5.0, 8.0), Kept(10.0, 8.0, missed=0.2))
    early = ended_until(evidence, 8.0)
    assert early.shape == (4, 38), "all of the first load but the two in flight at its end, in 0.5 s each"
    less = replace(
        evidence,
        due=evidence.due[1:],
        done=evidence.done[1:],
        counted=(evidence.counted[0][1:],),
        missed=(evidence.missed[0][1:],),
    )
    assert ended_until(less, 8.0).shape == (4, 37)


@pytest.mark.parametrize(
    ("later", "repeated"),
    [((8.0, 9.0), 0), ((1.0,), 1), ((1.0, 2.0, 9.0), 2), ((4.0,), 0)],
    ids=["inside", "start again", "two loads", "the load that was cut"],
)
def test_a_load_that_was_left_is_not_measured_again(later: tuple[float, ...], repeated: int) -> None:
    before = evidence_of(Kept(1.0, 8.0), Kept(2.0, 8.0), Kept(8.0, 8.0), Kept(4.0, 2.0))
    answer = replace(ANSWER, low=6.0, high=12.0)
    after = with_loads(before, later)
    found = replace(found_of(before), answer=answer)
    assert repeated_loads(found, after) == repeated


def test_a_recovery_at_a_load_that_was_measured_is_not_a_repetition() -> None:
    before = evidence_of(Kept(1.0, 8.0), Kept(8.0, 8.0), Kept(4.0, 2.0))
    after = with_loads(before, (1.0,), purpose=Purpose.RECOVER)
    assert repeated_loads(replace(found_of(before), answer=replace(ANSWER, low=6.0, high=12.0)), after) == 0


def test_answers_agree_unless_they_say_something_else() -> None:
    wide, drifted = replace(ANSWER, kind=AnswerKind.WIDE), replace(ANSWER, kind=AnswerKind.DRIFTED, load=None)
    assert replace(KILL, killed=wide).right
    assert not replace(KILL, killed=drifted).right
    assert not replace(KILL, killed=replace(ANSWER, kind=AnswerKind.CLIFF)).right
    assert not replace(KILL, killed=replace(ANSWER, low=10.5, high=11.0)).right
    assert not replace(KILL, kept=False).right
    assert not replace(KILL, repeated=1).right
    assert not replace(KILL, seconds=361.0).right


def test_the_table_lists_every_kill_after_which_the_answer_differs() -> None:
    other = replace(KILL, killed=replace(ANSWER, load=11.0, low=10.5, high=11.5), cut=Cut(tick=41))
    lines = table([KILL, other])
    assert "| KV-bound | 2 | 100 % | 0 | 50 % | 100 % | 50 % / 100 % | 5 % / 10 % | 5.0 / 4.7 |" in lines
    assert lines[-1] == "- KV-bound 21, killed at 10.25 s: [10.5, 11.5], whole [9.6, 10.4]; no load in common"
    assert table([KILL])[-1] == "After every kill the answer is the same."


def found_of(evidence: Evidence) -> Found:
    return Found(answer=ANSWER, evidence=evidence, now=evidence.seconds)


def with_loads(evidence: Evidence, loads: tuple[float, ...], *, purpose: Purpose = Purpose.MEASURE) -> Evidence:
    """The evidence with further loads of 8 s."""
    end = evidence.probes[-1].end
    later = [
        Probe(load=load, begin=end + 8 * number, end=end + 8 * (number + 1), purpose=purpose)
        for number, load in enumerate(loads)
    ]
    return replace(evidence, probes=(*evidence.probes, *later))
