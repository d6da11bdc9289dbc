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
from servetop.analysis.summary.trust_types import EngineTimesSummary
from servetop.core.errors import UsageError

_PATTERN = re.compile(r"\s*(?P<key>[A-Za-z_][\w.\[\]*]*)\s*(?P<sign><=|>=|==|!=|<|>)\s*(?P<limit>\S+)\s*")
_STAGE = re.compile(r"stages\[(?P<stage>\d{1,6}|\*)\]\.(?P<rest>.*)")
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
    """A condition on one number of the summary; `server.preemptions` is `preemptions` of its part `server`.

    A key that begins with `stages[2].` is that of stage 2, as the summary numbers it (`stage`: from 0, with warm-ups),
    one that begins with `stages[*].` that of every stage.
    """

    key: str
    sign: str
    limit: float

    @property
    def within(self) -> str:
        """The key without its stage."""
        return _split(self.key)[1]

    @property
    def stage(self) -> int | None:
        """The only stage that the condition is on; None for the whole run and for every stage."""
        stage = _split(self.key)[0]
        return None if stage in (None, "*") else int(stage)

    def values(self, numbers: Mapping[str, Any]) -> dict[int | None, float | None]:
        """Return the number by stage (None for the whole run) from a summary in JSON form; None if not measured."""
        stage, key = _split(self.key)
        if stage is None:
            return {None: _value(numbers, key)}
        stages = {each["stage"]: _value(each, key) for each in numbers.get("stages", ())}
        return stages if stage == "*" else {int(stage): stages.get(int(stage))}

    def is_met(self, value: float | None) -> bool:
        """Whether a value meets the condition; one that was not measured does not."""
        return value is not None and _SIGNS[self.sign](float(value), self.limit)

    def failure(self, numbers: Mapping[str, Any]) -> str | None:
        """Return one line if the summary (in JSON form) does not meet the condition or lacks the number, else None."""
        values = self.values(numbers)
        unmet = {stage: value for stage, value in values.items() if not self.is_met(value)}
        if values and not unmet:
            return None
        several = len(values) > 1
        found = [
            f"{f'stage {stage}: ' if several else ''}{'not measured' if value is None else f'it is {float(value):g}'}"
            for stage, value in unmet.items()
        ]
        return f"{self}: {', '.join(found) or 'there are no stages'}"

    def __str__(self) -> str:
        return f"{self.key}{self.sign}{self.limit:g}"


def _split(key: str) -> tuple[str | None, str]:
    """Return the stage (a number or `*`) of a key, None without one, and the key within it."""
    match = _STAGE.fullmatch(key)
    return (None, key) if match is None else (match["stage"], match["rest"])


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
        "cost",
        (
            "per_request",
            "per_million_tokens",
            "per_million_input_tokens",
            "per_million_cached_tokens",
            "per_million_output_tokens",
        ),
    ),
    (
        "trust",
        (
            "slip_p99_ms",
            "loop_lag_p99_ms",
            "offered_rate",
            "sent_rate",
            "completed_rate",
            "littles_law_error",
            "token_error",
            "itl_uncertainty_p99_ms",
            *(each.name for each in fields(EngineTimesSummary)),
        ),
    ),
)


def threshold_keys() -> tuple[str, ...]:
    """Return every valid key of a threshold, except non-standard percentiles and those of stages."""
    parts = (f"{part}.{key}" for part, keys in _PARTS for key in keys)
    return (*REQUEST_KEYS, *REASONING_KEYS, *parts, *(f"steady.{key}" for key in REQUEST_KEYS))


def parse_threshold(text: str) -> Threshold:
    """Parse a condition; UsageError if it is malformed, or with the closest valid keys if its key is unknown."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a threshold: use KEY<=NUMBER or KEY>=NUMBER, as in p99_ttft_ms<=500")
    key, keys = _split(match["key"])[1], threshold_keys()
    if key not in keys and percentile_of(key) is None:
        close = difflib.get_close_matches(key, keys, n=3, cutoff=0.5)
        valid = close or [*keys[:5], "p99_ttft_ms", "server.preemptions"]
        raise UsageError(f"{text!r}: unknown summary key {key!r}: valid keys are {', '.join(valid)}, …")
    try:
        limit = float(match["limit"])
    except ValueError:
        limit = math.nan
    if math.isnan(limit):
        raise UsageError(
            f"{text!r}: {match['limit']!r} is not a number, as in p99_ttft_ms<=500: the unit is in the key"
        )
    return Threshold(key=match["key"], sign=match["sign"], limit=limit)


def parse_cell_threshold(text: str) -> Threshold:
    """Parse a condition on one cell of a sweep, which is on none of the summary's stages; UsageError as above."""
    if text.lstrip().startswith("stages["):
        raise UsageError(f"{text!r}: a condition is on the cell itself: leave out stages[…]")
    return parse_threshold(text)


def percentile_of(key: str) -> float | None:
    """Return the percentile in a key such as `p99.9_ttft_ms` or `steady.p75_itl_ms`; None for another key."""
    match = _PERCENTILE.fullmatch(key)
    return float(match["q"]) if match is not None and float(match["q"]) <= 100 else None


def percentiles_needed(thresholds: Sequence[Threshold]) -> list[float]:
    """Return the percentiles that the conditions refer to."""
    percentiles = (percentile_of(each.within) for each in thresholds)
    return [each for each in percentiles if each is not None]


def needs_a_price(threshold: Threshold) -> bool:
    """Whether a condition is on a cost, which is measured only with a price."""
    return threshold.within.startswith("cost.")


def check_thresholds(summary: RunSummary, thresholds: Sequence[str]) -> list[str]:
    """Return one line for each condition that the summary does not meet."""
    numbers = summary_json(summary)
    failures = (parse_threshold(text).failure(numbers) for text in thresholds)
    return [line for line in failures if line is not None]
