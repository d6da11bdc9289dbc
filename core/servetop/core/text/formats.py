"""Numbers, times and shares as text: the one place where seconds become `340 ms` and counts `12.9k`.

A function that takes None returns `–` for it and for NaN; no text is longer than its documented width.
"""

from __future__ import annotations

import math
from typing import Literal

from servetop.core.units import GIB, MS_PER_S

UNKNOWN = "–"

_MINUTE, _HOUR = 60.0, 3600.0


def seconds(value: float | None, *, prose: bool = False) -> str:
    """Return a duration in at most 7 characters: `0.42 ms`, `340 ms`, `1.23 s`, `12.3 s`, `4.5 min`, `2.0 h`.

    In `prose` it is never in minutes and has no zeros at its end: `0.42 ms`, `98 ms`, `3.4 s`, `17 s`, `270 s`.
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    if prose:
        return _seconds_in_prose(value)
    if value < 0.9995:
        return f"{_digits(value * MS_PER_S)} ms"
    if value < 99.95:
        return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"
    if value < 99.5 * _MINUTE:
        return f"{value / _MINUTE:.1f} min" if value < 9.95 * _MINUTE else f"{value / _MINUTE:.0f} min"
    return f"{value / _HOUR:.1f} h" if value < 999.5 * _HOUR else f"{value / _HOUR:.0f} h"


def _seconds_in_prose(value: float) -> str:
    if value < 0.9995:
        return f"{value * MS_PER_S:.3g} ms"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def _digits(value: float) -> str:
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def number(value: float | None) -> str:
    """Return a rate or a mean with three digits in at most 6 characters: `0.42`, `64.0`, `2,852`, `12.9k`, `1.23M`."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "∞"
    if value < 99.95:
        return f"{value:.2f}" if value < 9.995 else f"{value:.1f}"
    return count(value)


def count(value: float | None) -> str:
    """Return a whole amount in at most 6 characters: `0`, `2,871`, `12.9k`, `1.23M`, `10.0G`."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "∞"
    if abs(value) < 9_999.5:
        return f"{value:,.0f}"
    for scale, suffix in ((1e3, "k"), (1e6, "M")):
        if abs(value) < 999.5 * scale:
            return f"{_digits(value / scale)}{suffix}"
    return f"{_digits(value / 1e9)}G"


def exact(value: float | None) -> str:
    """Return a whole amount with all its digits, as `12,880`: for values whose digits matter, such as KV blocks."""
    return UNKNOWN if value is None or math.isnan(value) else f"{value:,.0f}"


def in_full(value: float | None) -> str:
    """Return a value with three digits, or all of its whole ones, as `0.42`, `64.0`, `59,912`: for latencies in ms."""
    return number(value) if value is None or value < 99.95 or math.isinf(value) else exact(value)


def rate_number(value: float) -> str:
    """Return a rate in a sentence with up to three digits, or all whole ones, as `0.52`, `64`, `1,250`."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def percent(share: float | None, *, zeros: Literal["below all", "always", "never"] = "below all") -> str:
    """Return a share of 1 in at most 7 characters: `0.4 %`, `99.7 %`, `100 %`; never `100 %` for less than all.

    `zeros` tells where a decimal of 0 is kept: below 100 %, `always` (`100.0 %`) or `never` (`5 %`).
    """
    if share is None or math.isnan(share):
        return UNKNOWN
    if share >= 1 and zeros == "below all":
        return f"{share * 100:.0f} %"
    number = f"{math.floor(share * 1000) / 10:.1f}"
    return f"{number.removesuffix('.0') if zeros == 'never' else number} %"


def whole_percent(share: float) -> str:
    """Return a known share without decimals, rounded down, as `94%` of 94.7 %: less than 95 % never reads as `95%`."""
    return f"{math.floor(round(100 * share, 9))}%"


def signed_percent(share: float | None) -> str:
    """Return a relative difference with its sign: `+1.2 %`, `−0.3 %`, `±0.0 %`, `+12,690 %`."""
    if share is None or math.isnan(share):
        return UNKNOWN
    sign = "±" if abs(share) < 0.0005 else ("+" if share > 0 else "−")
    amount = abs(share) * 100
    return f"{sign}{amount:.1f} %" if amount < 999.95 else f"{sign}{amount:,.0f} %"


def relative(now: float, then: float) -> str:
    """By how much a value differs from an earlier one, in at most 8 characters: `+3.1 %`, `−45.0 %`, `+120 %`, `×12`.

    `–` if either is unknown, and for a value above an earlier one of 0.
    """
    if math.isnan(now) or math.isnan(then) or (then == 0 and now != 0):
        return UNKNOWN
    share = 0.0 if now == then else now / then - 1
    if share < 0.9995:
        return signed_percent(share)
    return f"+{share * 100:.0f} %" if share < 9.995 else f"×{count(now / then)}"


def clock_time(value: float) -> str:
    """Return a time of the run as `00:02:14`, 8 characters up to a hundred hours."""
    hours, minutes, second = _parts(value)
    return f"{hours:02d}:{minutes:02d}:{second:02d}"


def clock(value: float) -> str:
    """Return a span or a time of the run without leading zeros, as `0:07`, `2:14`, `1:02:14`."""
    hours, minutes, second = _parts(value)
    return f"{hours}:{minutes:02d}:{second:02d}" if hours else f"{minutes}:{second:02d}"


def _parts(value: float) -> tuple[int, int, int]:
    """Return the whole hours, minutes and seconds."""
    minutes, second = divmod(max(0, int(value + 1e-9)), 60)
    return (*divmod(minutes, 60), second)


def memory(used: float | None, total: float | None = None) -> str:
    """Bytes in GiB, `71.2 GiB`, or those in use of the total, `71.2/139.8 GiB`."""
    if used is None:
        return UNKNOWN
    return f"{used / GIB:.1f} GiB" if total is None else f"{used / GIB:.1f}/{total / GIB:.1f} GiB"


def joules(value: float | None) -> str:
    """Return an energy in at most 7 characters: `71.2 mJ`, `4.31 J`, `12.9 kJ`, `1.23 MJ`."""
    if value is None or math.isnan(value):
        return UNKNOWN
    for scale, unit in ((1e-3, "mJ"), (1.0, "J"), (1e3, "kJ")):
        if value < 999.5 * scale:
            return f"{_digits(value / scale)} {unit}"
    return f"{_digits(value / 1e6)} MJ"


def money(value: float | None, currency: str | None = None) -> str:
    """An amount with three digits, or all of its whole ones: `$0.31`, `1,250 EUR`, `0.000213` without a currency."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return _with_currency(f"{value:,.{_decimals(value)}f}", currency)


def money_interval(value: float | None, ends: tuple[float, float] | None, currency: str | None = None) -> str:
    """Return an amount and both ends of its interval, `$0.312 [0.305, 0.320]`; the amount alone without an interval."""
    if value is None or ends is None:
        return money(value, currency)
    low, high = (f"{end:,.{_decimals(value)}f}" for end in ends)
    return f"{money(value, currency)} [{low}, {high}]"


def _decimals(value: float) -> int:
    """Return the decimals that give an amount three digits."""
    return 0 if value == 0 else min(max(2 - math.floor(math.log10(abs(value))), 0), 9)


def _with_currency(amount: str, currency: str | None) -> str:
    """A symbol stands before the amount, a word such as EUR behind it."""
    if not currency:
        return amount
    return f"{amount} {currency}" if currency.isalpha() else f"{currency}{amount}"


def scaled(value: float | None, unit: str) -> str:
    """Return a large amount with a decimal prefix: `1.23 GB/s`, `312 TFLOP/s`, `0 B`."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if abs(value) < 999.5:
        return f"{value:.0f} {unit}"
    for scale, prefix in ((1e3, "k"), (1e6, "M"), (1e9, "G")):
        if abs(value) < 999.5 * scale:
            return f"{_digits(value / scale)} {prefix}{unit}"
    return f"{_digits(value / 1e12)} T{unit}"


def speed(factor: float) -> str:
    """Return a playback speed: `×1`, `×0.25`, `×64`."""
    return f"×{factor:g}"


def axis_number(value: float) -> str:
    """A value of a chart's axis, 0 or from 10⁻⁹ to 10¹², in at most 5 characters: `0`, `0.5`, `20`, `2.5M`, `1e-07`."""
    if not math.isfinite(value):
        return count(value)
    for scale, suffix, least in ((1e9, "G", 0.9995), (1e6, "M", 0.9995), (1e3, "k", 9.995)):
        if value >= least * scale:
            return f"{value / scale:.3g}{suffix}"
    if value >= 99.5:
        return f"{value:,.0f}"
    return next((text for text in (f"{value:.3g}", f"{value:.2g}", f"{value:.1g}") if len(text) <= 5), f"{value:.0e}")


def axis_seconds(value: float) -> str:
    """Return the seconds of a chart's axis in at most 5 characters: `0`, `30µs`, `340ms`, `2.5s`, `40s`."""
    if value == 0:
        return "0"
    if value < 0.9995e-3:
        return f"{value * 1e6:.0f}µs"
    if value < 1:
        digits = value * 1e3
        return f"{digits:.0f}ms" if digits >= 10 else f"{digits:.2g}ms"
    return f"{value:.3g}s"[:5]
