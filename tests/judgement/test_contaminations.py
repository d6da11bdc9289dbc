"""A planted contamination is named alone, and nothing in clean pairs; `make judge-compare` judges many more pairs."""

from __future__ import annotations

from random import Random

import pytest

from servetop.analysis.confounding.confounder import ConfounderKind
from tests.judgement.contaminated_pairs import CONTAMINATIONS, Pair, draw_pair
from tests.judgement.contaminations import PairScore, judge_contaminations, judge_pair, report


@pytest.fixture(scope="module")
def throttled() -> Pair:
    return draw_pair(ConfounderKind.GPU_CLOCKS, 0, seed=1)


def test_a_pair_is_judged_alike_with_and_without_recordings(throttled: Pair) -> None:
    live, recorded = (judge_pair(throttled, recorded=each) for each in (False, True))
    assert live == recorded
    assert live.named == {ConfounderKind.GPU_CLOCKS}
    assert live.texts[0].startswith("gpu clocks: GPU 0 ran at")


def test_the_same_run_twice_is_a_clean_pair(throttled: Pair) -> None:
    pair = Pair(name="twice", planted=None, runs=(throttled.runs[1], throttled.runs[1]), detail="")
    assert judge_pair(pair).named == frozenset()


@pytest.mark.integration
@pytest.mark.parametrize("kind", [None, *CONTAMINATIONS])
def test_every_contamination_is_named_and_no_other(kind: ConfounderKind | None) -> None:
    for score in judge_contaminations(Random().randrange(1 << 30), 10, kinds=[kind]):
        assert score.named == ({kind} if kind else set()), f"{score.name}: {score.detail}, {score.texts}"


def test_the_report_counts_what_was_named_beside_the_planted_contamination() -> None:
    def score(planted: ConfounderKind | None, *named: ConfounderKind) -> PairScore:
        return PairScore(name="", planted=planted, named=frozenset(named), texts=(), detail="")

    cache, client = ConfounderKind.CACHE, ConfounderKind.CLIENT
    lines = report([score(None), score(None, client), score(cache, cache), score(cache, client), score(cache)])
    assert lines[2:] == ["| none | 2 | – | 1 (client) |", "| cache | 3 | 1 | 1 (client) |"]
