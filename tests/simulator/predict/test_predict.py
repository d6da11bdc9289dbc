"""Predictions: their JSON, seeds, time scale, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from servetop.core.errors import UsageError
from servetop.simulator.predict.predict import PredictSpec, predict
from tests.simulator.predict.cells import cell_of, spec_of


def test_a_prediction_has_the_promised_keys() -> None:
    result = predict(spec_of(max_num_seqs=8, request_rate=20.0))
    assert set(result) == {"cells", "elapsed_s", "simulated_s"}
    (cell,) = result["cells"]
    assert {
        *("engine", "model", "gpu", "max_num_seqs", "request_rate", "output_throughput", "total_token_throughput"),
        *("preemptions", "recomputed_tokens", "duration", "completed", "kv_blocks_total", "max_kv_usage"),
        *("mean_running", "ttft_ms", "itl_ms", "e2el_ms", "max_concurrency"),
    } <= set(cell)
    assert set(cell["ttft_ms"]) == set(cell["itl_ms"]) == set(cell["e2el_ms"]) == {"p50", "p90", "p99", "mean"}
    assert cell["completed"] == 40
    assert cell["output_throughput"] == pytest.approx(40 * 128 / cell["duration"])
    assert json.loads(json.dumps(result)) == result


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first, second, third = (json.dumps(cell_of(request_rate=5.0, lengths="sharegpt", seed=seed)) for seed in (1, 1, 2))
    assert first == second != third


@pytest.mark.parametrize("load", [{"request_rate": 10.0}, {"max_concurrency": 4, "think_time": "0.05"}])
def test_the_time_scale_multiplies_every_duration_the_clients_too(load: dict[str, Any]) -> None:
    one, other = (cell_of(settings={"time_scale": scale}, **load) for scale in (1, 4))
    assert other["duration"] == pytest.approx(4 * one["duration"], rel=1e-4)
    assert other["ttft_ms"]["p99"] == pytest.approx(4 * one["ttft_ms"]["p99"], rel=1e-3)


@pytest.mark.parametrize("load", [{}, {"max_concurrency": 2}, {"max_concurrency": 2, "request_rate": 5.0}])
def test_requests_beyond_the_context_are_refused_and_counted(load: dict[str, Any]) -> None:
    cell = cell_of(num_prompts=3, input_len=2000, output_len=49, **load)
    assert (cell["completed"], cell["refused"], cell["output_throughput"]) == (0, 3, 0.0)


def test_a_cell_that_cannot_start_has_an_error_and_the_others_are_predicted() -> None:
    specs = [spec_of(), spec_of(model="llama-2-70b")]
    fine, refused = predict(specs)["cells"]
    assert fine["completed"] == 40
    assert "needs 138 GB" in refused["error"]
    with pytest.raises(UsageError, match="needs 138 GB"):
        predict(specs[1])


@pytest.mark.parametrize(
    ("spec", "words"),
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
def test_an_invalid_prediction_is_rejected_in_one_line(spec: PredictSpec, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        predict(spec)
