"""Values of the Prometheus and OpenMetrics text formats: quoted labels, help and numbers."""

from __future__ import annotations

import math

from servetop.core.text.sanitize import sanitize_line


def quoted_label(text: str) -> str:
    """Return a text of any origin as the value of a label, in quotes: printable, on one line, and escaped."""
    escaped = sanitize_line(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def help_line(text: str) -> str:
    """Return a text as the help of a metric: on one line, and escaped for both formats."""
    return text.replace("\\", "\\\\").replace("\n", " ").replace('"', "'")


def number_text(value: float) -> str:
    """Return a number as both formats write it, as in `12`, `0.25`, `NaN` or `+Inf`."""
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value)
