"""The results of a prediction as JSON."""

from __future__ import annotations

import json
import math

import pytest

from servetop.simulator.predict.predict import predict
from servetop.simulator.predict.prediction import cell_json, prediction_json
from tests.simulator.predict.cells import spec_of


def test_a_prediction_has_the_promised_keys() -> None:
    found = prediction_json(predict(spec_of(max_num_seqs=8, request_rate=20.0)))
    assert set(found) == {"answer", "cells", "elapsed_s", "simulated_s"}
    (cell,) = found["cells"]
    assert set(cell) == {
        *("engine", "model", "gpu", "max_num_seqs", "request_rate", "max_concurrency", "repeat", "label"),
        *("output_throughput", "total_token_throughput", "preemptions", "recomputed_tokens", "duration", "completed"),
        *("request_throughput", "share_within", "saturated", "limit"),
        *("cancelled", "refused", "kv_blocks_total", "max_kv_usage", "mean_running", "ttft_ms", "itl_ms", "e2el_ms"),
    }
    assert set(cell["ttft_ms"]) == set(cell["itl_ms"]) == set(cell["e2el_ms"]) == {"p50", "p90", "p99", "mean"}
    assert (cell["completed"], cell["request_rate"]) == (40, 20.0)
    assert cell["output_throughput"] == pytest.approx(40 * 128 / cell["duration"])
    assert json.loads(json.dumps(found)) == found


def test_an_unlimited_rate_is_inf_in_json() -> None:
    (cell,) = predict(spec_of()).cells
    assert (cell.request_rate, cell_json(cell)["request_rate"]) == (math.inf, "inf")
