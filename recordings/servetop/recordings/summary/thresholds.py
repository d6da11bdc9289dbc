"""Conditions on a summary, such as `p99_ttft_ms<=500`: what makes a run fail although nothing broke."""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servetop.core.errors import UsageError
from servetop.recordings.summary.energy_metrics import ENERGY_NUMBERS
from servetop.recordings.summary.engine_metrics import SERVER
from servetop.recordings.summary.request_metrics import FIGURES, METRICS, REASONING_FIGURES, REASONING_METRICS
from servetop.recordings.summary.trust_metrics import TRUST

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
    """A condition on one number of the summary; `server.preemptions` is that number of its `server` part."""

    key: str
    sign: str
    limit: float

    def broken_by(self, summary: Mapping[str, Any]) -> str | None:
        """One line when the summary does not meet it; a number that was not measured does not."""
        value = _value(summary, self.key)
        if value is None:
            return f"{self}: not measured"
        return None if _SIGNS[self.sign](float(value), self.limit) else f"{self}: it is {float(value):g}"

    def __str__(self) -> str:
        return f"{self.key}{self.sign}{self.limit:g}"


def _value(summary: Mapping[str, Any], key: str) -> Any:
    """The number at a key; a point separates a part's name from its key, but is also one of `p99.9_ttft_ms`."""
    part, _, rest = key.partition(".")
    if key in summary or not isinstance(summary.get(part), Mapping):
        return summary.get(key)
    return _value(summary[part], rest)


_PARTS = (("server", SERVER), ("energy", ENERGY_NUMBERS), ("trust", TRUST))


def threshold_keys() -> tuple[str, ...]:
    """Every key that a threshold can be on."""
    parts = (f"{part}.{key}" for part, keys in _PARTS for key in keys)
    return (*FIGURES, *REASONING_FIGURES, *parts, *(f"steady.{key}" for key in FIGURES))


def parse_threshold(text: str) -> Threshold:
    """UsageError, with the nearest valid keys, when it is malformed: to be called before the run, not after it."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no threshold: give KEY<=NUMBER or KEY>=NUMBER, as in p99_ttft_ms<=500")
    key, keys = match["key"], threshold_keys()
    if key not in keys and percentile_of(key) is None:
        near = difflib.get_close_matches(key, keys, n=3, cutoff=0.5) or [*keys[:5], "p99_ttft_ms", "server.preemptions"]
        raise UsageError(f"{text!r}: the summary has no {key!r}: valid keys are {', '.join(near)}, …")
    try:
        limit = float(match["limit"])
    except ValueError:
        limit = math.nan
    if math.isnan(limit):
        raise UsageError(f"{text!r}: {match['limit']!r} is no number, as in p99_ttft_ms<=500")
    return Threshold(key=key, sign=match["sign"], limit=limit)


def percentile_of(key: str) -> float | None:
    """The percentile that a key such as `p99.9_ttft_ms` or `steady.p75_itl_ms` names; None for another key."""
    match = _PERCENTILE.fullmatch(key)
    return float(match["q"]) if match is not None and float(match["q"]) <= 100 else None


def percentiles_needed(thresholds: Sequence[str]) -> list[float]:
    """The percentiles that conditions are on."""
    found = (percentile_of(parse_threshold(text).key) for text in thresholds)
    return [each for each in found if each is not None]


def check_thresholds(summary: Mapping[str, Any], thresholds: Sequence[str]) -> list[str]:
    """One line for each condition that is not met; empty when all are."""
    broken = (parse_threshold(text).broken_by(summary) for text in thresholds)
    return [line for line in broken if line is not None]
