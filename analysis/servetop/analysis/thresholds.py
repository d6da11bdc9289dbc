"""Thresholds: conditions on the summary, such as `p99_ttft_ms<=500`, that make a run fail."""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from servetop.analysis.summary.summary_json import summary_json
from servetop.analysis.summary.summary_types import (
    METRICS,
    REASONING_KEYS,
    REASONING_METRICS,
    REQUEST_KEYS,
    EnergySummary,
    RunSummary,
    ServerSummary,
)
from servetop.core.errors import UsageError

_PATTERN = re.compile(r"\s*(?P<key>[A-Za-z_][\w.]*)\s*(?P<sign><=|>=|==|!=|<|>)\s*(?P<limit>\S+)\s*")
_PERCENTILE = re.compile(rf"(?:steady\.)?p(?P<q>\d+(?:\.\d+)?)_(?:{'|'.join((*METRICS, *REASONING_METRICS))})_ms")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A condition on one number of the summary; `server.preemptions` is `preemptions` of its part `server`."""

    key: str
    sign: str
    limit: float

    def failure(self, numbers: Mapping[str, Any]) -> str | None:
        """Return one line if the summary (in JSON form) does not meet the condition or lacks the number, else None."""
        value = _value(numbers, self.key)
        if value is None:
            return f"{self}: not measured"
        return None if _SIGNS[self.sign](float(value), self.limit) else f"{self}: it is {float(value):g}"

    def __str__(self) -> str:
        return f"{self.key}{self.sign}{self.limit:g}"


def _value(numbers: Mapping[str, Any], key: str) -> Any:
    """Return the number at a key; a dot separates a part from its key, but also occurs in `p99.9_ttft_ms`."""
    part, _, rest = key.partition(".")
    if key in numbers or not isinstance(numbers.get(part), Mapping):
        return numbers.get(key)
    return _value(numbers[part], rest)


def _number_keys(kind: type, *, but: str) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.name != but)


_PARTS = (
    ("server", _number_keys(ServerSummary, but="peaks_reason")),
    ("energy", _number_keys(EnergySummary, but="source")),
    (
        "trust",
        (
            "slip_p99_ms", "loop_lag_p99_ms", "offered_rate", "sent_rate", "completed_rate", "littles_law_error",
            "token_error", "itl_uncertainty_p99_ms",
        ),
    ),
)  # fmt: skip


def threshold_keys() -> tuple[str, ...]:
    """Return every valid key of a threshold, except non-standard percentiles."""
    parts = (f"{part}.{key}" for part, keys in _PARTS for key in keys)
    return (*REQUEST_KEYS, *REASONING_KEYS, *parts, *(f"steady.{key}" for key in REQUEST_KEYS))


def parse_threshold(text: str) -> Threshold:
    """Parse a condition; UsageError if it is malformed, or with the closest valid keys if its key is unknown."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a threshold: use KEY<=NUMBER or KEY>=NUMBER, as in p99_ttft_ms<=500")
    key, keys = match["key"], threshold_keys()
    if key not in keys and percentile_of(key) is None:
        close = difflib.get_close_matches(key, keys, n=3, cutoff=0.5)
        valid = close or [*keys[:5], "p99_ttft_ms", "server.preemptions"]
        raise UsageError(f"{text!r}: unknown summary key {key!r}: valid keys are {', '.join(valid)}, …")
    try:
        limit = float(match["limit"])
    except ValueError:
        limit = math.nan
    if math.isnan(limit):
        raise UsageError(f"{text!r}: {match['limit']!r} is not a number, as in p99_ttft_ms<=500")
    return Threshold(key=key, sign=match["sign"], limit=limit)


def percentile_of(key: str) -> float | None:
    """Return the percentile in a key such as `p99.9_ttft_ms` or `steady.p75_itl_ms`; None for another key."""
    match = _PERCENTILE.fullmatch(key)
    return float(match["q"]) if match is not None and float(match["q"]) <= 100 else None


def percentiles_needed(thresholds: Sequence[str]) -> list[float]:
    """Return the percentiles that the conditions refer to."""
    percentiles = (percentile_of(parse_threshold(text).key) for text in thresholds)
    return [each for each in percentiles if each is not None]


def check_thresholds(summary: RunSummary, thresholds: Sequence[str]) -> list[str]:
    """Return one line for each condition that the summary does not meet."""
    numbers = summary_json(summary)
    failures = (parse_threshold(text).failure(numbers) for text in thresholds)
    return [line for line in failures if line is not None]
