"""One compared metric as plain values, for reports and screens."""

from __future__ import annotations

import math
import re

from servetop.analysis.comparison.comparison import MetricComparison
from servetop.analysis.comparison.report_types import ComparedValue


def compared_value(each: MetricComparison, *, names: tuple[str, str] = ("A", "B")) -> ComparedValue:
    """Return one metric as plain values."""
    metric, found = each.metric, each.difference
    low, high = (None, None) if found is None else found.interval
    needs = None if each.needs is None or each.needs.more_than else each.needs
    return ComparedValue(
        key=metric.key,
        title=metric.title,
        unit=metric.unit,
        family=str(metric.family),
        higher_is_better=metric.higher_is_better,
        a=None if found is None else _finite(found.a),
        b=None if found is None else _finite(found.b),
        difference=None if found is None else _finite(found.value),
        scale=str(metric.scale if found is None else found.scale),
        low=_finite(low),
        high=_finite(high),
        margin=each.margin,
        verdict=str(each.verdict),
        probability=each.probability,
        basis=None if found is None else str(found.basis),
        more_starts=None if needs is None or not needs.starts else needs.starts,
        more_seconds=None if needs is None or needs.starts else needs.seconds,
        more_than=None if each.needs is None else each.needs.more_than or None,
        reason=None if each.reason is None else str(each.reason),
        note=named(each.note, a=names[0], b=names[1]),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def named(text: str, *, a: str, b: str) -> str:
    """Return a text on A and B with other names for them."""
    return re.sub(r"\b[AB]\b", lambda found: a if found[0] == "A" else b, text)
