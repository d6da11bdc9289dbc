"""Thresholds of a watch, such as `kv_usage<90%`: conditions on a server's own metrics over time."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.errors import UsageError
from servetop.core.text import formats

GAUGES = {"kv_usage": "%", "running": "", "waiting": ""}
"""Gauges, with the unit of a limit on them."""
RATES = {
    "preemptions/s": "preemptions",
    "output_tokens/s": "engine_output_tokens",
    "prompt_tokens/s": "engine_prompt_tokens",
}
"""Rates, with the counters that they are of."""
LATENCIES = {"ttft": "TTFT", "itl": "ITL", "tpot": "TPOT", "e2el": "E2EL", "queue": "time in the queue"}
"""Latencies of the engine's histograms, with their names on the engine page; `_` and a quantile follow."""
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
ERROR_RATE = "error_rate"
"""The share of requests that the server failed, by its own counters."""
METRICS = (*GAUGES, ERROR_RATE, *RATES, *(f"{name}_{quantile}" for name in LATENCIES for quantile in QUANTILES))
_PATTERN = re.compile(r"\s*(?P<metric>[a-z][\w/]*)\s*(?P<sign><=|>=|<|>)\s*(?P<limit>[\d.]+)\s*(?P<unit>%|[a-z]*)\s*")
_OF_RUN = re.compile(r"(p\d+)_([a-z0-9]+?)(_ms)?")
"""How conditions on a run name a quantile: `p99_ttft<500ms` or `p99_ttft_ms<500`, the same as `ttft_p99<500ms`."""
_SCALES = {"%": {"%": 0.01}, "": {"": 1.0}, "s": {"ms": 1e-3, "s": 1.0}}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchThreshold:
    """A condition on one metric of a server, at any time."""

    metric: str
    """One of METRICS."""
    sign: str
    limit: float
    """A share, a number, a rate per second, or seconds."""
    text: str
    """The condition as the user wrote it, without spaces."""

    def is_broken(self, values: FloatArray) -> BoolArray:
        """Whether each value breaks it; one that is not known does not."""
        opposite = {"<": np.greater_equal, "<=": np.greater, ">": np.less_equal, ">=": np.less}[self.sign]
        broken: BoolArray = opposite(values, self.limit)
        return broken


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdResult:
    """Whether a threshold was kept by a server: `broken` and `undecided` are one line each, both empty if it was."""

    broken: str = ""
    undecided: str = ""


def parse_watch_threshold(text: str) -> WatchThreshold:
    """Parse a condition such as `kv_usage<90%`, `waiting<=10` or `ttft_p90<500ms`; UsageError for anything else."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} is not a threshold of a watch: use METRIC<LIMIT, as in kv_usage<90% or ttft_p90<500ms"
        )
    metric, unit = match["metric"], match["unit"]
    if (of_run := _OF_RUN.fullmatch(metric)) is not None and f"{of_run[2]}_{of_run[1]}" in METRICS:
        metric, unit = f"{of_run[2]}_{of_run[1]}", unit or ("ms" if of_run[3] else "")
    if metric not in METRICS:
        close = difflib.get_close_matches(metric, METRICS, n=4, cutoff=0.5) or METRICS
        raise UsageError(f"{text!r}: a watch has no metric {metric!r}: use {', '.join(close)}")
    kind = {**GAUGES, ERROR_RATE: "%", **dict.fromkeys(RATES, "")}.get(metric, "s")
    try:
        limit = float(match["limit"]) * _SCALES[kind][unit]
    except KeyError:
        form = {"%": "a percentage, as in 90%", "": "a number without a unit", "s": "ms or s, as in 500ms"}[kind]
        raise UsageError(f"{text!r}: the limit of {metric} is {form}") from None
    except ValueError:
        raise UsageError(f"{text!r}: {match['limit']!r} is not a number") from None
    return WatchThreshold(metric=metric, sign=match["sign"], limit=limit, text="".join(text.split()))


def judge(
    threshold: WatchThreshold, values: FloatArray, *, step: float, hold: float, server: str, pages: int = 2
) -> ThresholdResult:
    """Judge one value for each `step` seconds from second 0 on; NaN is not known.

    A threshold is broken once its condition has failed for `hold` seconds in a row. `pages` are the metrics pages that
    were read: a rate or a quantile needs two.
    """
    who = f"{server}: " if server else ""
    spans = _spans(threshold.is_broken(values))
    longest = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
    if (longest[1] - longest[0]) * step >= hold:
        begin, end = longest[0] * step, longest[1] * step
        until = "to the end" if longest[1] == values.size else f"for {formats.clock(end - begin)}"
        since = next(span for span in spans if (span[1] - span[0]) * step >= hold)
        again = "" if since == longest else f", first at {formats.clock(since[0] * step)}"
        return ThresholdResult(broken=f"{who}{threshold.text} was broken from {formats.clock(begin)} {until}{again}")
    known = float((~np.isnan(values)).sum()) * step
    if not known and pages == 1 and threshold.metric not in GAUGES:
        return ThresholdResult(undecided=f"{who}{threshold.text}: cannot be decided by one metrics page: it needs two")
    if not known:
        return ThresholdResult(undecided=f"{who}{threshold.text}: {threshold.metric} was not measured")
    if known < hold:
        return ThresholdResult(
            undecided=f"{who}{threshold.text}: measured for {known:g} s only, of at least {hold:g} s (--for)"
        )
    return ThresholdResult()


def _spans(flags: BoolArray) -> Sequence[tuple[int, int]]:
    """Return start and stop of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(int(start), int(stop)) for start, stop in zip(edges[::2], edges[1::2], strict=True)]
