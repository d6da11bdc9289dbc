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
from servetop.recordings.energy_figures import ENERGY_NUMBERS
from servetop.recordings.engine_figures import SERVER
from servetop.recordings.figures import FIGURES, REASONING_FIGURES
from servetop.recordings.trust_figures import TRUST

_PATTERN = re.compile(r"\s*(?P<key>[A-Za-z_][\w.]*)\s*(?P<sign><=|>=|==|!=|<|>)\s*(?P<limit>\S+)\s*")
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
        value: Any = summary
        for part in self.key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:
            return f"{self}: not measured"
        return None if _SIGNS[self.sign](float(value), self.limit) else f"{self}: it is {float(value):g}"

    def __str__(self) -> str:
        return f"{self.key}{self.sign}{self.limit:g}"


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
    if key not in keys:
        near = difflib.get_close_matches(key, keys, n=3, cutoff=0.5) or [*keys[:5], "p99_ttft_ms", "server.preemptions"]
        raise UsageError(f"{text!r}: the summary has no {key!r}: valid keys are {', '.join(near)}, …")
    try:
        limit = float(match["limit"])
    except ValueError:
        limit = math.nan
    if math.isnan(limit):
        raise UsageError(f"{text!r}: {match['limit']!r} is no number, as in p99_ttft_ms<=500")
    return Threshold(key=key, sign=match["sign"], limit=limit)


def check_thresholds(summary: Mapping[str, Any], thresholds: Sequence[str]) -> list[str]:
    """One line for each condition that is not met; empty when all are."""
    broken = (parse_threshold(text).broken_by(summary) for text in thresholds)
    return [line for line in broken if line is not None]
