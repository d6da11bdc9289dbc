"""Times and token counts of chunks survive packing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.chunk_codec import chunk_sizes_known, pack_counts, pack_times, unpack_counts, unpack_times


@given(st.lists(st.floats(0, 4000), max_size=50), st.floats(0, 1e5))
def test_chunk_times_keep_a_microsecond_without_drift(gaps: list[float], base: float) -> None:
    times = base + np.cumsum(np.array(gaps, dtype=np.float64))
    assert np.allclose(unpack_times(pack_times(times, base=base), base=base), times, rtol=0, atol=1.1e-6)


@given(st.lists(st.integers(0, 100_000), max_size=50))
def test_chunk_tokens_survive_packing(counts: list[int]) -> None:
    array = np.array(counts, dtype=np.int64)
    assert unpack_counts(pack_counts(array), chunks=len(counts)).tolist() == counts


def test_single_tokens_cost_nothing() -> None:
    assert pack_counts(np.ones(500, dtype=np.int64)) == b""


def test_a_gap_beyond_four_bytes_is_stored_as_the_largest() -> None:
    times = unpack_times(pack_times(np.array([0.0, 10_000.0]), base=0.0), base=0.0)
    assert times.tolist() == [0.0, 4294.967295]


def test_an_empty_response_packs_to_nothing() -> None:
    assert pack_times(np.zeros(0), base=1.0) == b""
    assert unpack_counts(b"", chunks=0).tolist() == []


def test_the_end_of_text_may_be_missing_from_the_chunks_but_not_more() -> None:
    assert chunk_sizes_known(10, 9)
    assert not chunk_sizes_known(10, 8)
    assert chunk_sizes_known(1000, 980)
