"""Columns of numbers as base64 of little-endian arrays, which a page reads as typed arrays."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

PackedColumn = Mapping[str, str]
"""`type` is the name of the typed array's elements, such as `f4`, and `data` its bytes in base64."""


def packed(values: npt.NDArray[Any], kind: str = "f4") -> PackedColumn:
    """Return a column as the elements `kind` of a typed array: `f4`, `u1`, `u2` or `u4`."""
    return {"type": kind, "data": base64.b64encode(values.astype(f"<{kind}").tobytes()).decode("ascii")}


def unpacked(column: PackedColumn) -> npt.NDArray[Any]:
    """Return the values of a packed column."""
    return np.frombuffer(base64.b64decode(column["data"]), dtype=f"<{column['type']}")


def rounded_beside(values: npt.NDArray[np.float64], limit: float | None) -> npt.NDArray[np.float32]:
    """Return values in single precision, each on the side of `limit` on which it was; NaN and infinity are kept."""
    narrow = values.astype(np.float32)
    if limit is None:
        return narrow
    within = values <= limit
    moved = ~np.isnan(values) & (within != (narrow.astype(np.float64) <= limit))
    towards = np.where(within, np.float32(-np.inf), np.float32(np.inf))
    return np.where(moved, np.nextafter(narrow, towards), narrow).astype(np.float32)
