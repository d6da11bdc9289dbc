"""A trend in one row: a bar per value, scaled to the largest."""

from __future__ import annotations

import numpy as np

from servetop.core.arrays import FloatArray

_BARS = "▁▂▃▄▅▆▇█"
_FLAT = 0.02
"""Values of which none is lower than the largest by more than this share do not change."""


def trend_text(values: FloatArray, cells: int) -> str:
    """Exactly `cells` characters, the newest value at the right: `·` for 0, a bar above it, a blank for a gap.

    Values that do not change are a line instead of bars of full height.
    """
    if cells < 1:
        return ""
    shown = values[-cells:]
    known = shown[~np.isnan(shown)]
    top = float(known.max()) if known.size else 0.0
    if known.size > 1 and known.min() >= top * (1 - _FLAT) > 0:
        return "".join(" " if np.isnan(value) else "─" for value in shown).rjust(cells)
    return "".join(_mark(float(value), top) for value in shown).rjust(cells)


def _mark(value: float, top: float) -> str:
    if np.isnan(value):
        return " "
    return _BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] if value > 0 else "·"
