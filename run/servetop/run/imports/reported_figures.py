"""The means and throughputs that a load generator wrote into its result, by the keys of a summary.

Latencies in milliseconds, rates per second, `duration` in seconds. What is absent or no positive number
is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

DURATION = "duration"
_BENCH = {
    "mean_ttft_ms": "mean_ttft_ms",
    "mean_tpot_ms": "mean_tpot_ms",
    "mean_itl_ms": "mean_itl_ms",
    "mean_e2el_ms": "mean_e2el_ms",
    "mean_e2e_latency_ms": "mean_e2el_ms",
    "output_throughput": "output_throughput",
    "request_throughput": "request_throughput",
    "duration": DURATION,
}
_AIPERF = {
    "time_to_first_token": "mean_ttft_ms",
    "ttft": "mean_ttft_ms",
    "inter_token_latency": "mean_itl_ms",
    "request_latency": "mean_e2el_ms",
    "output_token_throughput": "output_throughput",
    "request_throughput": "request_throughput",
    "benchmark_duration": DURATION,
}
_MS_PER_UNIT = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3}
_GUIDELLM = {
    "time_to_first_token_ms": ("mean_ttft_ms", 1.0),
    "time_per_output_token_ms": ("mean_tpot_ms", 1.0),
    "inter_token_latency_ms": ("mean_itl_ms", 1.0),
    "request_latency": ("mean_e2el_ms", 1e3),
    "output_tokens_per_second": ("output_throughput", 1.0),
    "requests_per_second": ("request_throughput", 1.0),
}


def bench_figures(document: Mapping[str, Any]) -> Mapping[str, float]:
    """Return the figures in a result of vLLM's or SGLang's benchmark."""
    return _positive({key: document.get(name) for name, key in _BENCH.items() if name in document})


def aiperf_figures(summary: Mapping[str, Any]) -> Mapping[str, float]:
    """Return the figures in AIPerf's summary, whose metrics were in `records` until the end of 2025."""
    records = summary.get("records")
    metrics = records if isinstance(records, Mapping) else summary
    found: dict[str, Any] = {}
    for name, key in _AIPERF.items():
        metric = metrics.get(name)
        if isinstance(metric, Mapping):
            value = metric.get("avg")
            scale = _MS_PER_UNIT.get(str(metric.get("unit"))) if key.endswith("_ms") else 1.0
            if isinstance(value, int | float) and scale is not None:
                found[key] = value * scale
    return _positive(found)


def guidellm_figures(metrics: Mapping[str, Any]) -> Mapping[str, float]:
    """Return the figures of the successful requests in the metrics of one of guidellm's benchmarks."""
    found: dict[str, Any] = {}
    for name, (key, scale) in _GUIDELLM.items():
        groups = metrics.get(name)
        successful = groups.get("successful") if isinstance(groups, Mapping) else None
        value = successful.get("mean") if isinstance(successful, Mapping) else None
        found |= {key: value * scale} if isinstance(value, int | float) else {}
    return _positive(found)


def _positive(values: Mapping[str, Any]) -> Mapping[str, float]:
    return {
        key: float(value)
        for key, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    }
