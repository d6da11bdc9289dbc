"""Lines over one axis as an SVG element: numbers and escaped texts only, without scripts, styles and links."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from servetop.core.text import formats
from servetop.reports.page.html_text import Markup, element

COLOURS = ("#2f7fd0", "#d2691e", "#7a8694", "#b03a86", "#2e8b57", "#8a6d1a")
"""Colours of the lines, in order; readable on white and on black."""
MOST_POINTS = 600
"""Points of one line that are drawn; a longer one is drawn by the lowest and highest value of each span."""
DASHES: Sequence[Sequence[int]] = ((), (6, 3), (2, 3), (8, 3, 2, 3))
"""Lengths in pixels of the dashes and gaps of a line, by number: solid, dashed, dotted, dash and dot."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 8, 26


_FEW_POWERS = 3
"""Powers of ten on an axis up to which it has 2 and 5 times each, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SvgLine:
    """One line of a chart; a value that is not finite is a gap."""

    name: str
    x: Sequence[float]
    """Ascending; as many as `y`."""
    y: Sequence[float]
    dash: int | None = None
    """Number of its dashes, 0 for none; by default lines of one colour differ by them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTime:
    """A horizontal axis of the time of a run in seconds, written as `1:10`."""

    shaded: Sequence[tuple[float, float]] = ()
    """Start and end of each shaded span, in seconds; overlapping spans are drawn as one."""


_CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400)


def line_chart(
    lines: Sequence[SvgLine],
    *,
    x_unit: str | RunTime,
    y_unit: str,
    logarithmic: bool = False,
    width: int = 560,
    height: int = 200,
) -> Markup:
    """Return an `svg` element with axes and a legend; a linear y axis begins at 0 unless a value is below it."""
    legend = 18 * math.ceil(len(lines) / 3)
    lines = [_positive(each) for each in lines] if logarithmic else lines
    x_low, x_high = _span([each.x for each in lines])
    x_at = _scale(x_low, x_high, _LEFT, width - _RIGHT)
    levels, y_at = _vertical(lines, logarithmic=logarithmic, height=height)
    parts = [] if isinstance(x_unit, str) else _shades(x_unit, (x_low, x_high), x_at=x_at, height=height)
    for tick in levels:
        parts.append(_rule(_LEFT, width - _RIGHT, y_at(tick)))
        parts.append(_text(_number(tick), x=_LEFT - 6, y=y_at(tick) + 4, anchor="end"))
    parts += _across(lines, x_unit, x_at=x_at, height=height)
    for place, line in enumerate(lines):
        points = [(x_at(x), y_at(y)) if math.isfinite(y) else None for x, y in thinned(line.x, line.y)]
        dash = place // len(COLOURS) if line.dash is None else line.dash
        stroke = {"stroke": COLOURS[place % len(COLOURS)], "stroke_dasharray": _lengths(dash)}
        parts += [element("path", d=each, fill="none", stroke_width=1.5, **stroke) for each in _paths(points)]
        x, y = _LEFT + place % 3 * (width - _LEFT) / 3, height + 18 * (place // 3) + 10
        parts.append(element("path", d=f"M{x:.1f} {y - 4:.1f}h18", fill="none", stroke_width=2, **stroke))
        parts.append(_text(f"{line.name} {f'({y_unit})' if y_unit else ''}".strip(), x=x + 24, y=y, anchor="start"))
    return element(
        "svg", *parts, viewBox=f"0 0 {width} {height + legend}", width=width, height=height + legend, role="img",
        aria_label=", ".join(each.name for each in lines), xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def _across(
    lines: Sequence[SvgLine], x_unit: str | RunTime, *, x_at: Callable[[float], float], height: int
) -> Iterator[Markup]:
    """Yield the values below the horizontal axis, and its unit."""
    low, high = _span([each.x for each in lines])
    right = x_at(high)
    if isinstance(x_unit, RunTime):
        step = next((each for each in _CLOCK_STEPS if high - low <= 7 * each), _CLOCK_STEPS[-1])
        texts = {
            float(each * step): formats.clock(each * step)
            for each in range(math.ceil(low / step), int(high / step) + 1)
        }
    else:
        whole = all(float(each).is_integer() for line in lines for each in line.x)
        found = (each for each in ticks(low, high, most=7) if not whole or float(each).is_integer())
        texts = {each: _number(each) for each in found}
        yield _text(x_unit, x=right, y=height - 1, anchor="end")
    for tick, text in texts.items():
        yield _text(text, x=x_at(tick), y=height - _BOTTOM + 15, anchor="middle")


def _shades(time: RunTime, window: tuple[float, float], *, x_at: Callable[[float], float], height: int) -> list[Markup]:
    """Return the shaded spans within a window."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(time.shaded):
        last = merged.pop() if merged and begin <= merged[-1][1] else (begin, end)
        merged.append((last[0], max(last[1], end)))
    spans = [(x_at(max(begin, window[0])), x_at(min(end, window[1]))) for begin, end in merged]
    return [
        element(
            "rect", x=f"{left:.1f}", y=_TOP, width=f"{right - left:.1f}", height=height - _TOP - _BOTTOM,
            fill="currentColor", fill_opacity=0.12,
        )
        for left, right in spans if right > left
    ]  # fmt: skip


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _vertical(
    lines: Sequence[SvgLine], *, logarithmic: bool, height: int
) -> tuple[Sequence[float], Callable[[float], float]]:
    """Return the values of the horizontal rules, and what places a value between top and bottom."""
    low, high = _span([each.y for each in lines])
    if not logarithmic:
        low, high = min(0.0, low), max(0.0, high)
        return ticks(low, high, most=5), _scale(low, high, height - _BOTTOM, _TOP)
    low, high = decades(low, high)
    along = _scale(math.log10(low), math.log10(high), height - _BOTTOM, _TOP)
    powers = range(round(math.log10(low)), round(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(powers) <= _FEW_POWERS else (1,)
    rules = [factor * 10.0**power for power in powers for factor in factors if factor * 10.0**power <= high]
    return rules, lambda value: along(math.log10(value))


def decades(low: float, high: float) -> tuple[float, float]:
    """Return the powers of ten around positive values, at least two different ones."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return 10.0**first, 10.0 ** max(last, first + 1)


def ticks(low: float, high: float, *, most: int) -> list[float]:
    """Return at most that many round numbers from `low` to `high`, evenly spaced."""
    if not high > low:
        return [low]
    rough = (high - low) / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [each * step for each in range(first, math.floor(high / step + 1e-9) + 1)]


def thinned(x: Sequence[float], y: Sequence[float]) -> list[tuple[float, float]]:
    """Return the points, or of many the lowest and highest of each of equal spans, in order."""
    points = list(zip(x, y, strict=True))
    if len(points) <= MOST_POINTS:
        return points
    found: list[tuple[float, float]] = []
    size = math.ceil(2 * len(points) / MOST_POINTS)
    for start in range(0, len(points), size):
        span = points[start : start + size]
        known = [each for each in span if math.isfinite(each[1])] or span[:1]
        found += sorted({min(known, key=lambda point: point[1]), max(known, key=lambda point: point[1])})
    return found


def _positive(line: SvgLine) -> SvgLine:
    return replace(line, y=[each if each > 0 else math.nan for each in line.y])


def _span(columns: Sequence[Sequence[float]]) -> tuple[float, float]:
    known = [each for column in columns for each in column if math.isfinite(each)]
    return (min(known), max(known)) if known else (1.0, 1.0)


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    length = high - low
    return lambda value: start + (end - start) * ((value - low) / length if length else 0.5)


def _lengths(dash: int) -> str | None:
    return " ".join(map(str, DASHES[dash % len(DASHES)])) or None


def _paths(points: Sequence[tuple[float, float] | None]) -> Iterator[str]:
    """Yield the path of each run of points without a gap."""
    run: list[str] = []
    for each in (*points, None):
        if each is not None:
            run.append(f"{each[0]:.1f} {each[1]:.1f}")
        elif run:
            yield f"M{'L'.join(run)}" + ("h0.1" if len(run) == 1 else "")
            run = []


def _rule(left: float, right: float, y: float) -> Markup:
    return element(
        "path", d=f"M{left:.1f} {y:.1f}H{right:.1f}", stroke="currentColor", stroke_opacity=0.15, fill="none"
    )


def _text(text: str, *, x: float, y: float, anchor: str) -> Markup:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, font_size=11, fill="currentColor")
