"""A column that grows by blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_FIRST = 1 << 16
"""Rows for which space is reserved at first."""


class GrowingColumn:
    """Appends blocks of values to one array, whose reserved space takes no memory until it is written.

    Keeping the blocks to concatenate them would take twice the memory: the allocator does not return small blocks.
    """

    def __init__(self, block: npt.NDArray[Any]) -> None:
        self._values = np.empty(_FIRST, block.dtype)
        self._size = 0
        self.append(block)

    def append(self, block: npt.NDArray[Any]) -> None:
        """Add values at the end; the column takes on the type of the block if that is wider."""
        dtype = np.promote_types(self._values.dtype, block.dtype)
        stop = self._size + block.size
        if dtype != self._values.dtype or stop > self._values.size:
            wider = np.empty(max(self._values.size, 2 * stop), dtype)
            wider[: self._size] = self.values
            self._values = wider
        self._values[self._size : stop] = block
        self._size = stop

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values so far."""
        return self._values[: self._size]
