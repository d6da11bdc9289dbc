"""The share of failed requests is that of an engine's own counters, without what clients give up or send wrong."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from servetop.analysis.exported.metric_values import periods_between
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.analysis.fleet.failed_requests import failed_share
from servetop.engines.metrics.exported_tables import EXPORTED_BY
from servetop.engines.metrics.series_collector import SeriesCollector, SeriesPacker

VLLM = Path(__file__).parents[2] / "engines" / "data" / "vllm" / "metrics_0.32.0.txt"
REASONS = ("stop", "abort", "error")
COMPLETIONS = 'http_requests_total{handler="/v1/completions",method="POST",status='


def shares(engine: str, *pages: str) -> list[float]:
    """The share from each page to the next, as it is recorded of them, ten seconds apart."""
    collector, packer, history = SeriesCollector(EXPORTED_BY[engine]), SeriesPacker(), ScrapeHistory()
    for number, page in enumerate(pages):
        collector.collect({"/metrics": page.encode()}, at=10.0 * number)
        reading = collector.take()
        assert reading is not None
        history.extend([packer.pack(reading)])
    found: list[float] = failed_share(periods_between(history, range(len(pages)))).tolist()
    return found


def test_answers_of_vllm_with_5xx_are_failures_and_those_with_4xx_are_none() -> None:
    page = VLLM.read_text(encoding="utf-8")
    assert f'{COMPLETIONS}"2xx"}} 146.0' in page
    served = page.replace(f'{COMPLETIONS}"2xx"}} 146.0', f'{COMPLETIONS}"2xx"}} 176.0')
    wrong = served.replace(f'{COMPLETIONS}"4xx"}} 2.0', f'{COMPLETIONS}"4xx"}} 12.0')
    failing = f'{wrong}{COMPLETIONS}"5xx"}} 5.0\n'.replace('"2xx"} 176.0', '"2xx"} 191.0')
    found = shares("vllm", page, served, wrong, failing, failing)
    assert found[:3] == [0.0, 0.0, 0.25], "30 served; 10 sent wrong; 15 served and 5 failed"
    assert math.isnan(found[3]), "no request"


def test_without_answers_by_status_what_the_engine_ended_with_an_error_counts_and_aborted_requests_do_not() -> None:
    counts = ((10, 0, 0), (10, 8, 0), (16, 8, 2))
    pages = [
        "".join(
            f'vllm:request_success_total{{finished_reason="{reason}"}} {count}\n'
            for reason, count in zip(REASONS, each, strict=True)
        )
        for each in counts
    ]
    assert shares("vllm", *pages) == [0.0, 0.25]


@pytest.mark.parametrize(
    ("engine", "served", "failed", "none"),
    [
        (
            "tensorrt-llm",
            'trtllm_request_success_total{finished_reason="length"}',
            'trtllm_request_error_total{http_code="429"}',
            'trtllm_request_error_total{http_code="400"}',
        ),
        ("tgi", "tgi_request_success", 'tgi_request_failure{err="overloaded"}', 'tgi_request_failure{err="dropped"}'),
        (
            "triton-tensorrt-llm",
            'nv_inference_request_success{model="m"}',
            'nv_inference_request_failure{model="m",reason="REJECTED"}',
            'nv_inference_request_failure{model="m",reason="CANCELED"}',
        ),
    ],
)
def test_other_engines_count_what_they_refuse(engine: str, served: str, failed: str, none: str) -> None:
    pages = [
        f"{served} {a}\n{failed} {b}\n{none} {c}\n" for a, b, c in ((10, 0, 0), (16, 2, 0), (16, 2, 4), (20, 3, 4))
    ]
    assert shares(engine, *pages) == [0.25, 0.0, 0.2]


def test_an_engine_that_counts_no_failures_has_no_share() -> None:
    page = "sglang:num_aborted_requests_total 5\nsglang:gen_throughput 1\n"
    assert all(map(math.isnan, shares("sglang", page, page.replace("5", "9"))))
