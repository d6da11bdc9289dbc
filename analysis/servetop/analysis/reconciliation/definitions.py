"""How each load generator computes the figures that it prints, and how servetop does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from servetop.analysis.reconciliation.client_rows import ClientRows
from servetop.core.arrays import FloatArray


class ReconciledMetric(StrEnum):
    """The figures of two tools whose difference is explained, by their keys in a summary."""

    TTFT = "mean_ttft_ms"
    TPOT = "mean_tpot_ms"
    ITL = "mean_itl_ms"
    E2EL = "mean_e2el_ms"
    OUTPUT_THROUGHPUT = "output_throughput"
    REQUEST_THROUGHPUT = "request_throughput"


LATENCIES = (ReconciledMetric.TTFT, ReconciledMetric.TPOT, ReconciledMetric.ITL, ReconciledMetric.E2EL)
THROUGHPUTS = (ReconciledMetric.OUTPUT_THROUGHPUT, ReconciledMetric.REQUEST_THROUGHPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDefinition:
    """How a figure is computed from the requests of a run."""

    text: str
    """The definition in words, as part of a sentence."""
    compute: Callable[[ClientRows], float]
    """Seconds, or a rate per second; NaN if the requests do not have it."""


def mean_of(values: FloatArray) -> float:
    """Return the mean of the values that are known; NaN without any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def _ratio(amount: float, count: float) -> float:
    return amount / count if count > 0 else math.nan


def _token_gaps(rows: ClientRows) -> float:
    found = rows.completed
    known = ~np.isnan(found.later) & ~np.isnan(found.span)
    return _ratio(float(found.span[known].sum()), float(found.later[known].sum()))


def _chunk_gaps(rows: ClientRows) -> float:
    found = rows.completed
    known = ~np.isnan(found.span)
    return _ratio(float(found.span[known].sum()), float(found.gaps[known].sum()))


def _later_tokens(rows: ClientRows) -> float:
    """Return the mean over requests of (E2EL - TTFT) / (output tokens - 1)."""
    found = rows.completed
    several = found.output > 1
    return mean_of((found.e2el - found.ttft)[several] / (found.output[several] - 1))


def _even_gaps(rows: ClientRows) -> float:
    found = rows.completed
    known = ~np.isnan(found.span) & (found.output > 1)
    return _ratio(float(found.span[known].sum()), float((found.output[known] - 1).sum()))


def _all_tokens(rows: ClientRows) -> float:
    found = rows.completed
    some = found.output > 0
    return mean_of(found.e2el[some] / found.output[some])


def _all_tokens_weighted(rows: ClientRows) -> float:
    """Return the sum over requests of the time to the last token by the sum of the output tokens."""
    found = rows.completed
    last = found.ttft + np.nan_to_num(found.span)
    known = ~np.isnan(last) & (found.output > 0)
    return _ratio(float(last[known].sum()), float(found.output[known].sum()))


def _requests_over(rows: ClientRows) -> float:
    return _ratio(float(rows.ok.sum()), rows.seconds if rows.duration is None else rows.duration)


def _tokens_over(rows: ClientRows) -> float:
    seconds = rows.seconds if rows.duration is None else rows.duration
    return _ratio(float(np.nansum(rows.output[rows.ok])), seconds)


def _own_requests(rows: ClientRows) -> float:
    return _ratio(float(rows.ok.sum()), rows.seconds)


def _own_tokens(rows: ClientRows) -> float:
    return _ratio(float(np.nansum(rows.output[rows.ok])), rows.seconds)


COMMON: Mapping[ReconciledMetric, MetricDefinition] = {
    ReconciledMetric.TTFT: MetricDefinition(
        text="first chunk with content − sent", compute=lambda rows: mean_of(rows.completed.ttft)
    ),
    ReconciledMetric.TPOT: MetricDefinition(
        text="the mean over requests of (E2EL − TTFT) / tokens after the first chunk",
        compute=lambda rows: mean_of(rows.completed.tpot),
    ),
    ReconciledMetric.ITL: MetricDefinition(
        text="the time between chunks / tokens after the first", compute=_token_gaps
    ),
    ReconciledMetric.E2EL: MetricDefinition(text="last byte − sent", compute=lambda rows: mean_of(rows.completed.e2el)),
    ReconciledMetric.OUTPUT_THROUGHPUT: MetricDefinition(
        text="output tokens / (last byte − first request)", compute=_own_tokens
    ),
    ReconciledMetric.REQUEST_THROUGHPUT: MetricDefinition(
        text="completed / (last byte − first request)", compute=_own_requests
    ),
}
"""The definitions of servetop, by which the requests of both runs are compared."""

_OWN_DURATION: Mapping[ReconciledMetric, MetricDefinition] = {
    ReconciledMetric.OUTPUT_THROUGHPUT: MetricDefinition(
        text="output tokens / the duration in the file", compute=_tokens_over
    ),
    ReconciledMetric.REQUEST_THROUGHPUT: MetricDefinition(
        text="completed / the duration in the file", compute=_requests_over
    ),
}
_LATER_TOKENS = MetricDefinition(
    text="the mean over requests of (E2EL − TTFT) / (output tokens − 1)", compute=_later_tokens
)
_CHUNK_GAPS = MetricDefinition(text="the time between chunks / chunks after the first", compute=_chunk_gaps)
_EVEN_GAPS = MetricDefinition(text="the time from first to last token / (output tokens − 1)", compute=_even_gaps)
_BENCH = {**_OWN_DURATION, ReconciledMetric.TPOT: _LATER_TOKENS, ReconciledMetric.ITL: _CHUNK_GAPS}
OTHERS: Mapping[str, Mapping[ReconciledMetric, MetricDefinition]] = {
    "vLLM bench": _BENCH,
    "SGLang bench_serving": _BENCH,
    "AIPerf": {**_OWN_DURATION, ReconciledMetric.TPOT: _LATER_TOKENS, ReconciledMetric.ITL: _LATER_TOKENS},
    "GenAI-Perf": {ReconciledMetric.TPOT: _LATER_TOKENS, ReconciledMetric.ITL: _LATER_TOKENS},
    "guidellm": {
        **_OWN_DURATION,
        ReconciledMetric.TPOT: MetricDefinition(
            text="the time to the last token / output tokens, the first included", compute=_all_tokens_weighted
        ),
        ReconciledMetric.ITL: _EVEN_GAPS,
    },
    "inference-perf": {**_OWN_DURATION, ReconciledMetric.TPOT: _LATER_TOKENS, ReconciledMetric.ITL: _CHUNK_GAPS},
    "LLMPerf": {
        **_OWN_DURATION,
        ReconciledMetric.ITL: MetricDefinition(
            text="the mean over requests of E2EL / output tokens, TTFT included", compute=_all_tokens
        ),
    },
}
"""By the name of a tool: the definitions in which it differs from servetop."""


def definition_of(tool: str, metric: ReconciledMetric) -> MetricDefinition:
    """Return how a tool computes a metric; as servetop does if nothing else is known of it."""
    return OTHERS.get(tool, {}).get(metric, COMMON[metric])
