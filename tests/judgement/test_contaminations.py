"""A planted contamination is named alone, and nothing in clean pairs; `make judge-compare` judges many more pairs."""

from __future__ import annotations

import pytest

from servetop.analysis.confounding.confounder import ConfounderKind
from servetop.core.config import StageConfig
from servetop.simulator.virtual_run.virtual_gpu import GpuTelemetry
from servetop.simulator.virtual_run.virtual_run import run_virtually
from tests.judgement.contaminated_pairs import CONTAMINATIONS, Pair
from tests.judgement.contaminations import PairScore, holds, judge_contaminations, judge_pair, report
from tests.simulator.virtual_run.runs import plan_of

CACHE, CLIENT = ConfounderKind.CACHE, ConfounderKind.CLIENT


@pytest.fixture(scope="module")
def throttled() -> Pair:
    stage = StageConfig(request_rate=6.0, duration=8.0)
    runs = [
        run_virtually(plan_of(stage, plan={"gpus": GpuTelemetry(throttle_from=0.0, throttled_to=share)}))
        for share in (1.0, 0.8)
    ]
    return Pair(name="", planted=ConfounderKind.GPU_CLOCKS, runs=(runs[0], runs[1]), detail="")


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
    for score in judge_contaminations(1, 5, kinds=[kind]):
        assert score.named == ({kind} if kind else set()), f"{score.name}: {score.detail}, {score.texts}"


def _score(planted: ConfounderKind | None, *named: ConfounderKind) -> PairScore:
    return PairScore(name="", planted=planted, named=frozenset(named), texts=(), detail="")


def test_the_report_counts_what_was_named_beside_the_planted_contamination() -> None:
    scores = [_score(None), _score(None, CLIENT), _score(CACHE, CACHE), _score(CACHE, CLIENT), _score(CACHE)]
    assert report(scores)[2:] == ["| none | 2 | – | 1 (client) |", "| cache | 3 | 1 | 1 (client) |"]


def test_the_goal_is_95_percent_named_and_no_other_condition_named() -> None:
    good = [_score(None), *(19 * [_score(CACHE, CACHE)])]
    assert holds([*good, _score(CACHE)])
    assert not holds([*good, _score(CACHE), _score(CACHE)])
    assert not holds([*good, _score(None, CACHE)])
    assert not holds([*good, _score(CACHE, CACHE, CLIENT)])
