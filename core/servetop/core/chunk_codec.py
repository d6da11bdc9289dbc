"""Chunk times and token counts as small byte strings, for the file and for the wire between processes.

Times are delta-coded: the first is microseconds since `base`, each further one microseconds since the one before,
as little-endian unsigned 32-bit integers (4 bytes a chunk; a gap above 71 minutes is cut to 71 minutes).
"""

from __future__ import annotations

from servetop.core.arrays import FloatArray, IntArray, np
from servetop.core.units import US_PER_S

_MAX_DELTA = 0xFFFFFFFF


def pack_times(times: FloatArray, *, base: float) -> bytes:
    """Code ascending instants (seconds, none before `base`) to the microsecond; no error accumulates."""
    if not times.size:
        return b""
    micros = np.rint((times - base) * US_PER_S).astype(np.int64)
    deltas = micros.copy()
    deltas[1:] -= micros[:-1]
    return np.minimum(np.maximum(deltas, 0), _MAX_DELTA).astype("<u4").tobytes()


def unpack_times(blob: bytes, *, base: float) -> FloatArray:
    """The instants (seconds) that `pack_times` coded with the same base."""
    deltas = np.frombuffer(blob, dtype="<u4").astype(np.int64)
    times: FloatArray = base + np.cumsum(deltas) / US_PER_S
    return times


def pack_counts(counts: IntArray) -> bytes:
    """Code small non-negative counts in one byte each, or in four when one is above 255; all ones as nothing.

    The empty string stands for "one token in every chunk", the usual case.
    """
    if not counts.size or bool((counts == 1).all()):
        return b""
    width = "<u1" if int(counts.max()) <= 0xFF else "<u4"
    return width[2].encode() + counts.astype(width).tobytes()


def unpack_counts(blob: bytes, *, chunks: int) -> IntArray:
    """The counts that `pack_counts` coded, for a request of that many chunks."""
    if not blob:
        return np.ones(chunks, dtype=np.int64)
    return np.frombuffer(blob[1:], dtype="<u1" if blob[:1] == b"1" else "<u4").astype(np.int64)
