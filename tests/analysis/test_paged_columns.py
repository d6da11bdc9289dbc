"""A column of equal entries takes no memory, and reads as one whose entries are stored."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.series.paged_columns import PAGE, PagedColumns

PARTS = st.lists(
    st.tuples(st.sampled_from([0.0, 7.0, math.nan, "rising"]), st.sampled_from([0, 1, 3, PAGE, 2 * PAGE + 5])),
    max_size=6,
)


def values_of(kind: float | str, size: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.arange(size, dtype=np.float64) if isinstance(kind, str) else np.full(size, kind)


@given(PARTS, st.lists(st.booleans(), min_size=6, max_size=6))
def test_entries_are_the_same_however_they_are_stored(
    parts: list[tuple[float | str, int]], evicted: list[bool]
) -> None:
    stored, compact = PagedColumns(["a"]), PagedColumns(["a"])
    for (kind, size), evicts in zip(parts, evicted, strict=False):
        stored.extend("a", values_of(kind, size).tolist())
        compact.extend_array("a", values_of(kind, size))
        if evicts:
            stored.evict()
            compact.evict()
        length = len(stored)
        assert len(compact) == length
        np.testing.assert_array_equal(compact.column("a"), stored.column("a"))
        np.testing.assert_array_equal(compact.column("a", start=1, stop=5), stored.column("a", start=1, stop=5))
        for stop in (0, length // 2, length):
            np.testing.assert_equal(compact.total("a", stop=stop), stored.total("a", stop=stop))
            assert compact.last_known("a", stop=stop) == stored.last_known("a", stop=stop)
        for position in {0, length - 1} if length else ():
            np.testing.assert_equal(compact.value("a", position), stored.value("a", position))


@given(PARTS, st.integers(0, PAGE))
def test_what_is_dropped_is_still_in_the_sums(parts: list[tuple[float | str, int]], count: int) -> None:
    stored, compact = PagedColumns(["a"]), PagedColumns(["a"])
    for kind, size in parts:
        stored.extend("a", values_of(kind, size).tolist())
        compact.extend_array("a", values_of(kind, size))
    dropped = min(count, len(stored))
    for columns in (stored, compact):
        columns.drop_first(dropped)
    np.testing.assert_array_equal(compact.column("a"), stored.column("a"))
    np.testing.assert_equal(compact.total("a", stop=len(compact)), stored.total("a", stop=len(stored)))
