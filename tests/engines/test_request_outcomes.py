"""The counts of ended and failed requests are those of an engine's own counters, by the rule of its failures."""

from __future__ import annotations

import pytest

from servetop.analysis.exported.failure_counters import FAILURE_COUNTERS
from servetop.engines.engine_registry import load_engine
from servetop.engines.metrics.request_outcomes import request_outcomes

VLLM = "vllm:num_requests_running 1\n"
SUCCESS = "vllm:request_success_total{finished_reason="
ANSWERS = 'http_requests_total{handler="/v1/completions",method="POST",status='


def outcomes(engine: str, page: str, *, path: str = "/metrics") -> tuple[float | None, float | None] | None:
    """What the reader of an engine has counted: ended and failed."""
    reader = load_engine(engine).metrics()
    assert reader is not None
    sample = reader.sample({path: page.encode()}, start=0.0, end=0.0)
    return None if sample is None else (sample.requests_ended_total, sample.requests_failed_total)


def test_answers_with_5xx_are_failures_of_vllm_and_come_before_what_its_engine_ended() -> None:
    page = f'{VLLM}{SUCCESS}"stop"}} 7\n{ANSWERS}"2xx"}} 8\n{ANSWERS}"4xx"}} 4\n{ANSWERS}"5xx"}} 3\n'
    assert outcomes("vllm", page) == (15.0, 3.0)


def test_without_answers_aborted_requests_are_no_failures_and_errors_are() -> None:
    page = f'{VLLM}{SUCCESS}"stop"}} 7\n{SUCCESS}"abort"}} 5\n{SUCCESS}"error"}} 2\n'
    assert outcomes("vllm", page) == (14.0, 2.0)
    assert outcomes("ray-serve-llm", page.replace("vllm:", "ray_vllm_")) == (14.0, 2.0)


def test_an_engine_that_counts_neither_has_none() -> None:
    assert outcomes("vllm", VLLM) == (None, None)
    assert outcomes("sglang", "sglang:num_running_reqs 1\nsglang:num_aborted_requests_total 5\n") == (None, None)
    assert outcomes("llama.cpp", "llamacpp:requests_processing 1\n") == (None, None)


@pytest.mark.parametrize(
    ("engine", "page", "expected"),
    [
        ("tgi", "tgi_queue_size 0\n", (0.0, 0.0)),
        ("tgi", 'tgi_queue_size 0\ntgi_request_failure{err="overloaded"} 3\n', (3.0, 3.0)),
        (
            "tgi",
            'tgi_request_success 9\ntgi_request_failure{err="validation"} 4\ntgi_request_failure{err="generation"} 1\n',
            (14.0, 1.0),
        ),
        (
            "triton-tensorrt-llm",
            'nv_inference_request_success{model="m"} 9\nnv_inference_request_failure{model="m",reason="REJECTED"} 2\n'
            'nv_inference_request_failure{model="m",reason="CANCELED"} 4\n',
            (15.0, 2.0),
        ),
    ],
)
def test_counters_that_appear_with_their_first_increment_are_0_before(
    engine: str, page: str, expected: tuple[float, float]
) -> None:
    assert outcomes(engine, page) == expected


def test_refusals_of_tensorrt_llm_are_failures_and_wrong_requests_are_not() -> None:
    counted = ((200, 0), (429, 2), (503, 1), (400, 6))
    page = "trtllm_request_success_total 9\n" + "".join(
        f'trtllm_request_error_total{{http_code="{code}"}} {count}\n' for code, count in counted[1:]
    )
    assert outcomes("tensorrt-llm", page, path="/prometheus/metrics") == (18.0, 3.0)


def test_an_impossible_count_is_not_known() -> None:
    assert outcomes("vllm", f'{VLLM}{SUCCESS}"error"}} -1\n') == (None, None)
    assert outcomes("vllm", f'{VLLM}{SUCCESS}"error"}} NaN\n') == (None, None)


def test_answers_alone_do_not_make_a_page_that_of_vllm() -> None:
    assert outcomes("vllm", f'{ANSWERS}"5xx"}} 3\n') is None


def test_all_series_of_a_counter_are_asked_of_a_prometheus_server() -> None:
    for counter in FAILURE_COUNTERS:
        sources = request_outcomes(counter.name)
        assert {name for each in sources.values() for name in each.names} == {*counter.names, *counter.names_beside}
