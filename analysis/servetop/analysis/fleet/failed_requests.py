"""The share of requests that a server fails, by its own counters, as far as it exports such.

A failure is what the server did not do: HTTP 5xx, a refusal because it is full, an error in a step. What a client sends
wrong or gives up itself is none: HTTP 4xx of an engine that counts 429 among them, aborted requests, failed validation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.exported.metric_values import Periods
from servetop.analysis.exported.scrape_history import SeriesName
from servetop.core.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureCounter:
    """A counter of requests, some values of whose label are failures."""

    name: str
    """With or without `_total` on the page."""
    label: str
    failures: re.Pattern[str]
    """Values of the label that are failures; those of other values count as requests only."""
    beside: str = ""
    """A counter of the other requests; empty: the counter has all."""


COUNTERS = (
    FailureCounter(name="http_requests", label="status", failures=re.compile("5..")),
    FailureCounter(name="vllm:request_success", label="finished_reason", failures=re.compile("error")),
    FailureCounter(name="ray_vllm_request_success", label="finished_reason", failures=re.compile("error")),
    FailureCounter(
        name="trtllm_request_error", label="http_code", failures=re.compile("5..|429"), beside="trtllm_request_success"
    ),
    FailureCounter(
        name="tgi_request_failure",
        label="err",
        failures=re.compile("overloaded|generation|incomplete"),
        beside="tgi_request_success",
    ),
    FailureCounter(
        name="nv_inference_request_failure",
        label="reason",
        failures=re.compile("REJECTED|BACKEND|OTHER"),
        beside="nv_inference_request_success",
    ),
)
"""Of these the first that a page has counts: answers of the HTTP server include what failed before the engine."""


def failed_share(periods: Periods) -> FloatArray:
    """Return failed requests / all that ended in each period, 0-1; NaN without a request, and without such counters."""
    unknown = np.full(periods.seconds.size, np.nan)
    for counter in COUNTERS:
        own = _columns(periods.columns, counter.name)
        beside = _columns(periods.columns, counter.beside) if counter.beside else []
        if not own and not beside:
            continue
        failed = [
            place for place in own if counter.failures.fullmatch(periods.columns[place].label(counter.label) or "")
        ]
        total = _grown(periods, [*own, *beside])
        return np.asarray(np.divide(_grown(periods, failed), total, out=unknown, where=total > 0))
    return unknown


def _columns(columns: Sequence[SeriesName], name: str) -> list[int]:
    return [place for place, column in enumerate(columns) if column.name in (name, f"{name}_total")]


def _grown(periods: Periods, places: Sequence[int]) -> FloatArray:
    """Return what some counters grew by in each period; those that are not known then count as 0."""
    return np.asarray(np.nan_to_num(periods.increases[:, places]).sum(axis=1))
