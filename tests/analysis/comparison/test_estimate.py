"""Estimates of metrics, and errors that match the spread of repeated runs."""

import dataclasses
import math

import numpy as np
import pytest

from servetop.analysis.comparison.compared_metrics import ComparedMetric, metric_named
from servetop.analysis.comparison.estimate import Estimate, estimate
from servetop.analysis.comparison.slices import sliced
from servetop.analysis.comparison.stage_sample import Cumulative, StageSample, TokenGaps
from servetop.core.histogram import LogHistogram
from tests.analysis.comparison.samples import stage


def metric(key: str) -> ComparedMetric:
    found = metric_named(key)
    assert found is not None
    return found


def estimated(sample: StageSample, key: str) -> Estimate | None:
    found = sliced(sample)
    assert found is not None
    return estimate(found, metric(key))


def known(sample: StageSample, key: str) -> Estimate:
    found = estimated(sample, key)
    assert found is not None
    return found


def test_a_mean_and_its_percentiles_are_those_of_the_requests_in_milliseconds() -> None:
    sample = stage()
    values = sample.latencies["ttft"] * 1e3
    assert known(sample, "mean_ttft_ms").value == pytest.approx(values.mean())
    assert known(sample, "p90_ttft_ms").value == pytest.approx(np.percentile(values, 90))


@pytest.mark.parametrize("key", ["mean_ttft_ms", "p50_ttft_ms", "p90_ttft_ms"])
def test_the_error_matches_the_spread_of_repeated_runs(key: str) -> None:
    found = [known(stage(rate=16.0, seed=seed), key) for seed in range(60)]
    spread = float(np.std([each.value for each in found], ddof=1))
    errors = float(np.mean([(each.low_error + each.high_error) / 2 for each in found]))
    assert errors == pytest.approx(spread, rel=0.35)


def test_a_p99_of_few_requests_has_an_unbounded_error() -> None:
    assert known(stage(rate=1.0, seconds=100.0), "p99_ttft_ms").high_error == math.inf
    assert known(stage(rate=1.0, seconds=100.0), "p99_ttft_ms").shortage > 4
    assert math.isfinite(known(stage(rate=40.0, seconds=100.0), "p99_ttft_ms").high_error)


def test_throughput_is_tokens_over_time() -> None:
    found = known(stage(tokens_per_second=640.0), "output_throughput")
    assert found.value == pytest.approx(640.0)
    assert found.error.value == pytest.approx(0.0, abs=1e-9)


def test_requests_count_in_proportion_to_their_stay_in_the_window() -> None:
    sample = stage(rate=8.0, seconds=100.0)
    assert sample.completions(np.array([0.0, 0.5])).tolist() == [pytest.approx(sum(0.5 - i / 8 for i in range(4)))]
    assert known(sample, "request_throughput").value == pytest.approx(8.0, rel=0.01)


def test_metrics_without_measurements_have_no_estimate() -> None:
    sample = stage()
    for key in ("request_goodput", "preemptions_per_request", "mean_kv_usage", "joules_per_output_token", "p50_itl_ms"):
        assert estimated(sample, key) is None
    silent = dataclasses.replace(sample, latencies={**sample.latencies, "tpot": np.full(800, np.nan)})
    assert estimated(silent, "mean_tpot_ms") is None


def test_counters_become_shares_per_request_per_second_and_per_token() -> None:
    at = np.arange(0.0, 100.5, 0.5)
    counters = {
        "output_tokens": Cumulative(at, at * 1000.0),
        "preemptions": Cumulative(at, at * 0.8),
        "kv_usage": Cumulative(at, at * 0.25),
        "joules": Cumulative(at, at * 300.0),
    }
    sample = dataclasses.replace(stage(rate=8.0), counters=counters, good=np.arange(800) % 2 == 0)
    assert known(sample, "preemptions_per_request").value == pytest.approx(0.1, rel=0.01)
    assert known(sample, "mean_kv_usage").value == pytest.approx(0.25)
    assert known(sample, "joules_per_output_token").value == pytest.approx(0.3)
    assert known(sample, "request_goodput").value == pytest.approx(4.0, rel=0.01)


def test_token_gaps_come_from_the_histograms_of_the_ticks() -> None:
    generator = np.random.default_rng(3)
    values = [generator.normal(0.02, 0.002, 50) for _ in range(400)]
    gaps = TokenGaps(np.linspace(0.125, 99.875, 400), [LogHistogram.of(each) for each in values])
    sample = dataclasses.replace(stage(), gaps=gaps)
    pooled = np.concatenate(values) * 1e3
    assert known(sample, "mean_itl_ms").value == pytest.approx(pooled.mean(), rel=1e-6)
    assert known(sample, "p99_itl_ms").value == pytest.approx(np.percentile(pooled, 99), rel=0.01)
    assert known(sample, "p50_itl_ms").value == pytest.approx(np.percentile(pooled, 50), rel=0.01)


def test_the_error_of_a_percentile_is_that_of_the_share_below_it_not_below_its_bucket() -> None:
    generator = np.random.default_rng(4)
    histograms = []
    for share in np.repeat(generator.uniform(0.6, 0.95, 32), 12):
        fast = round(1000 * share)
        histograms.append(LogHistogram.of(np.repeat([0.02, 0.021, 0.1], [fast, 990 - fast, 10])))
    gaps = TokenGaps(np.linspace(0.125, 99.875, len(histograms)), histograms)
    found = known(dataclasses.replace(stage(), gaps=gaps), "p90_itl_ms")
    assert found.value == pytest.approx(21.0, rel=0.01)
    assert found.low_error > 0.0
    assert found.high_error > 0.0
