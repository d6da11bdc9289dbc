"""Versions of engines, as their servers tell them."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)")


def is_older(version: str, oldest: str) -> bool:
    """Whether a version comes before another: `2.10` after `2.9`.

    Never for what does not begin with a number, and for a build out of a development tree (`0.1.dev1+g3a2b`), which
    says nothing of its age.
    """
    told, wanted = _NUMBERS.match(version), _NUMBERS.match(oldest)
    if told is None or wanted is None or "dev" in version:
        return False
    return _padded(told[1]) < _padded(wanted[1])


def _padded(numbers: str) -> tuple[int, ...]:
    """So that `2` and `2.0.0` are the same."""
    parts = tuple(int(part) for part in numbers.split(".")[:4])
    return parts + (0,) * (4 - len(parts))
