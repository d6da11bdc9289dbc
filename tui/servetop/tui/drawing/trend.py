"""A trend in one row: a bar per value, scaled to the largest."""

from __future__ import annotations

import numpy as np

from servetop.core.arrays import FloatArray

_BARS = "▁▂▃▄▅▆▇█"


def trend_text(values: FloatArray, cells: int) -> str:
    """Exactly `cells` characters, the newest value at the right: `·` for 0, a bar above it, a blank for a gap."""
    if cells < 1:
        return ""
    shown = values[-cells:]
    top = float(np.nanmax(shown)) if (~np.isnan(shown)).any() else 0.0
    return "".join(_mark(float(value), top) for value in shown).rjust(cells)


def _mark(value: float, top: float) -> str:
    if np.isnan(value):
        return " "
    return _BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] if value > 0 else "·"
