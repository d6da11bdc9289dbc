"""What is assumed about starts where there are too few to measure it."""

from __future__ import annotations

from servetop.analysis.comparison.compared_metrics import METRICS
from servetop.analysis.comparison.start_spread import ELSEWHERE, ON_GPU, SAME, StartSpread


def test_latencies_have_a_spread_of_their_own() -> None:
    spreads = {metric.key: ELSEWHERE.of(metric) for metric in METRICS}
    assert {spreads["output_throughput"], spreads["joules_per_output_token"]} == {ELSEWHERE.others}
    assert {spreads["mean_ttft_ms"], spreads["p99_itl_ms"]} == {ELSEWHERE.latencies}


def test_the_largest_of_several_is_that_of_each_kind() -> None:
    mixed = StartSpread(latencies=0.5, others=0.0)
    assert StartSpread.largest([ON_GPU, mixed]) == StartSpread(latencies=0.5, others=ON_GPU.others)
    assert StartSpread.largest([]) == SAME
