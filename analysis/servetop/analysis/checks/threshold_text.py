"""Conditions and figures of the summary in words, as in `p99 TTFT ≤ 500 ms`."""

from __future__ import annotations

import re

from servetop.analysis.checks.thresholds import Threshold

_LATENCY = re.compile(r"(?P<steady>steady\.)?(?P<statistic>mean|median|std|p\d+(?:\.\d+)?)_(?P<metric>\w+)_ms")
_ABBREVIATED = ("ttft", "ttfot", "tpot", "itl", "e2el")
_SIGNS = {"<=": "≤", ">=": "≥", "==": "=", "!=": "≠"}


def threshold_text(threshold: Threshold) -> str:
    """Return a condition in words, such as `p99 TTFT ≤ 500 ms`; keys without a name of their own stay as they are."""
    return f"{key_words(threshold.key)[0]} {limit_text(threshold)}"


def limit_text(threshold: Threshold) -> str:
    """Return what a condition asks of its figure, such as `≤ 500 ms`."""
    unit = key_words(threshold.key)[1]
    return f"{_SIGNS.get(threshold.sign, threshold.sign)} {threshold.limit:,g}{unit}"


def key_words(key: str) -> tuple[str, str]:
    """Return a key of the summary in words, and the unit to put behind its value: `("p99 TTFT", " ms")`."""
    latency = _LATENCY.fullmatch(key)
    if latency is None:
        return key, ""
    metric = latency["metric"].upper() if latency["metric"] in _ABBREVIATED else latency["metric"]
    return f"{'steady ' if latency['steady'] else ''}{latency['statistic']} {metric}", " ms"


def figure_text(value: float, limit: float) -> str:
    """Return a number with as many digits as tell it from the limit."""
    texts = [f"{value:,.{digits}f}" for digits in (0 if abs(value) >= 100 or value.is_integer() else 1, 2, 3)]
    return next((text for text in texts if float(text.replace(",", "")) != limit), f"{value:g}")
