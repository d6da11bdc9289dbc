"""Predictions: seeds, time scale and invalid specifications."""

from __future__ import annotations

from typing import Any

import pytest

from servetop.core.errors import UsageError
from servetop.simulator.predict.predict import PredictSpec, predict
from servetop.simulator.predict.prediction import cell_json
from tests.simulator.predict.cells import result_of, spec_of


def test_the_same_seed_gives_the_same_results_and_another_seed_others() -> None:
    first, second, third = (result_of(request_rate=5.0, lengths="sharegpt", seed=seed) for seed in (1, 1, 2))
    assert first == second != third


@pytest.mark.parametrize("load", [{"request_rate": 10.0}, {"max_concurrency": 4, "think_time": "0.05"}])
def test_the_time_scale_multiplies_every_duration_the_clients_too(load: dict[str, Any]) -> None:
    one, other = (result_of(settings={"time_scale": scale}, **load) for scale in (1, 4))
    assert other.duration == pytest.approx(4 * one.duration, rel=1e-4)
    assert other.ttft_ms.p99 == pytest.approx(4 * one.ttft_ms.p99, rel=1e-3)


@pytest.mark.parametrize("load", [{}, {"max_concurrency": 2}, {"max_concurrency": 2, "request_rate": 5.0}])
def test_requests_beyond_the_context_are_refused_and_counted(load: dict[str, Any]) -> None:
    result = result_of(num_prompts=3, input_len=2000, output_len=49, **load)
    assert (result.completed, result.refused, result.output_throughput) == (0, 3, 0.0)


def test_a_cell_that_cannot_start_has_an_error_and_the_others_are_predicted() -> None:
    specs = [spec_of(), spec_of(model="llama-2-70b")]
    fine, failed = predict(specs).cells
    assert fine.require_result().completed == 40
    assert "needs 138 GB" in failed.error
    assert "result" not in cell_json(failed)
    with pytest.raises(UsageError, match="needs 138 GB"):
        failed.require_result()
    with pytest.raises(UsageError, match="needs 138 GB"):
        predict(specs[1])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (spec_of(request_rate=0.0), "a request rate of 0 sends nothing"),
        (spec_of(num_prompts=0), "a number of prompts of 0"),
        (spec_of(num_prompts=None, request_rate=3.0), "a prediction needs an end"),
        (spec_of(arrivals="sometimes", request_rate=1.0), "unknown 'sometimes'"),
        (spec_of(router="best"), "unknown router 'best'"),
        (spec_of(replicas=0), "replicas must be at least 1"),
        (spec_of(lengths="long"), "unknown 'long'"),
    ],
)
def test_an_invalid_prediction_is_rejected_in_one_line(spec: PredictSpec, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        predict(spec)
