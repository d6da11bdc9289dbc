"""Values of the engine's metrics as text, in the units that people use."""

from __future__ import annotations

from servetop.analysis.exported.metric_spec import Unit
from servetop.core.text import formats


def value_text(
    value: float,
    unit: Unit,
    *,
    p90: float | None = None,
    at_most: float = 0.0,
    bucket: tuple[float, float] | None = None,
) -> str:
    """The value with its unit; of a histogram p50 / p90, or the `bucket` that contains both, as in `300–500 tok`.

    `at_most` is the upper bound of its first bucket: `≤300 ms`, or `≤300 ms / 2.50 s` if only the median is in it.
    """
    if p90 is None:
        return quantity(value, unit)
    first = 0 < value <= at_most
    if first and p90 <= at_most:
        return f"≤{quantity(at_most, unit)}"
    if bucket is not None and not 0 <= bucket[1] <= at_most:
        return _range(*bucket, unit)
    median = at_most if first else value
    if unit is Unit.SECONDS:
        texts = [formats.seconds(median), formats.seconds(p90)]
    else:
        texts = [_amount(median), f"{_amount(p90)} {unit}".rstrip()]
    return ("≤" if first else "") + " / ".join(texts)


def _range(low: float, high: float, unit: Unit) -> str:
    if high == float("inf"):
        return f">{quantity(low, unit)}"
    if unit is Unit.SECONDS:
        return f"{formats.seconds(low)}–{formats.seconds(high)}"
    return f"{_amount(low)}–{_amount(high)} {unit}".rstrip()


def quantity(value: float, unit: Unit) -> str:
    """Return a number with its unit, as in `61.0 %`, `1.23 s`, `787 /s`, `30.1 TFLOP/s`, `×1.50`."""
    if value != value:
        return formats.UNKNOWN
    match unit:
        case Unit.SHARE:
            return formats.percent(value)
        case Unit.SECONDS:
            return formats.seconds(value)
        case Unit.BYTES | Unit.BYTES_PER_SECOND | Unit.FLOPS:
            return formats.scaled(value, unit)
        case Unit.TIMES:
            return f"×{formats.number(value)}"
        case _:
            return f"{_amount(value)} {unit}".rstrip()


def _amount(value: float) -> str:
    return formats.count(value) if value.is_integer() else formats.number(value)
