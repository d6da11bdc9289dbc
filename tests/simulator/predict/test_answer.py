"""The answer of a prediction: the largest load that it sustains, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.predict.predict import PredictSpec, predict
from servetop.simulator.predict.prediction import PredictedAnswer

INF = float("inf")


def answer_to(
    rates: Sequence[float], batches: Sequence[int] = (64,), *, goodput: Mapping[str, float] | None = None,
    settings: Mapping[str, int] | None = None,
) -> PredictedAnswer:  # fmt: skip
    stages = tuple(
        StageConfig(max_num_seqs=batch, request_rate=rate, num_prompts=300) for batch in batches for rate in rates
    )
    spec = PredictSpec(stages=stages, workload=WorkloadConfig(), goodput=goodput or {}, settings=settings or {})
    answer = predict(spec).answer
    assert answer is not None
    return answer


def test_a_full_batch_limits_the_load() -> None:
    answer = answer_to((1, 40), (4,))
    assert (answer.kept, answer.missed, answer.limit) == (1, 40, "batch-bound")
    assert answer.text.startswith("batch 4 saturates between 1 and 40 req/s (batch-bound); it serves up to ")


def test_a_full_kv_cache_limits_the_load() -> None:
    answer = answer_to((1, 40), (256,), settings={"kv_blocks": 300})
    assert (answer.kept, answer.missed, answer.limit) == (1, 40, "KV-bound")


def test_the_best_batch_size_answers() -> None:
    assert answer_to((1, 4, 40), (2, 64)).max_num_seqs == 64


def test_a_load_that_the_engine_serves_does_not_saturate_it() -> None:
    answer = answer_to((0.5, 1))
    assert (answer.text, answer.limit) == ("batch 64 is not saturated up to 1 req/s, the highest load", None)


def test_requests_at_once_show_what_the_engine_serves_at_most() -> None:
    answer = answer_to((INF,), (8,))
    assert (answer.kept, answer.missed, answer.limit) == (None, None, "batch-bound")
    assert answer.text.startswith("batch 8 serves up to ")


def test_with_objectives_the_answer_is_the_largest_load_within_them() -> None:
    answer = answer_to((1, 2, 60), (64,), goodput={"ttft": 0.5})
    assert (answer.kept, answer.missed) == (2, 60)
    assert answer.text.startswith("largest load within TTFT ≤ 500 ms: 2 req/s at batch 64; 60 req/s misses it (")


def test_objectives_that_no_load_keeps_are_named_with_the_closest() -> None:
    answer = answer_to((1, 2), goodput={"e2el": 0.001})
    assert answer.kept is None
    assert answer.text.startswith("no load keeps E2EL ≤ 1 ms for 95% of its requests; closest: batch 64 at ")


def test_without_a_higher_load_the_answer_says_so() -> None:
    assert answer_to((1, 2), goodput={"ttft": 5.0}).text.endswith("2 req/s at batch 64; no higher load was predicted")


@pytest.mark.parametrize("metric", ["ttft", "ttfot", "tpot", "e2el"])
def test_each_objective_counts(metric: str) -> None:
    assert answer_to((1,), goodput={metric: 100.0}).kept == 1
    assert answer_to((1,), goodput={metric: 1e-6}).kept is None
