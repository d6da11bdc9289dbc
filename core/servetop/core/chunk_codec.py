"""Compact byte strings for the times and token counts of a response's chunks, and how far those counts are known.

Times are delta-coded: the first is microseconds since `base`, each later one microseconds since its predecessor, as
little-endian unsigned 32-bit integers (4 bytes per chunk; a gap above 71 minutes is stored as 71 minutes).
"""

from __future__ import annotations

from typing import Any

from servetop.core.arrays import FloatArray, IntArray, np
from servetop.core.units import US_PER_S

_MAX_DELTA = 0xFFFFFFFF
UNSIZED_LIMIT = 0.01
"""Maximum fraction of completed requests with chunks of unknown size, which are excluded from ITL and TPOT."""
TEXTLESS_FRACTION = 0.02
"""Largest fraction of a response's tokens that may arrive without text; their gaps count towards the next token's."""


def pack_times(times: FloatArray, *, base: float) -> bytes:
    """Encode ascending times (seconds, none before `base`) to the microsecond; rounding errors do not accumulate."""
    if not times.size:
        return b""
    micros = np.rint((times - base) * US_PER_S).astype(np.int64)
    deltas = micros.copy()
    deltas[1:] -= micros[:-1]
    return np.minimum(np.maximum(deltas, 0), _MAX_DELTA).astype("<u4").tobytes()


def unpack_times(blob: bytes, *, base: float) -> FloatArray:
    """Decode the times (seconds) that `pack_times` encoded with the same base."""
    deltas = np.frombuffer(blob, dtype="<u4").astype(np.int64)
    times: FloatArray = base + np.cumsum(deltas) / US_PER_S
    return times


def pack_counts(counts: IntArray) -> bytes:
    """Encode non-negative counts in one byte each, or in four if any exceeds 255.

    The empty string means one token in every chunk, the usual case.
    """
    if not counts.size or bool((counts == 1).all()):
        return b""
    width = "<u1" if int(counts.max()) <= 0xFF else "<u4"
    return width[2].encode() + counts.astype(width).tobytes()


def unpack_counts(blob: bytes, *, chunks: int) -> IntArray:
    """Decode the counts that `pack_counts` encoded for a response of `chunks` chunks."""
    if not blob:
        return np.ones(chunks, dtype=np.int64)
    return np.frombuffer(blob[1:], dtype="<u1" if blob[:1] == b"1" else "<u4").astype(np.int64)


def chunk_sizes_known(total: Any, counted: Any) -> Any:
    """Whether the chunks' own token counts, `counted` in sum, explain the server's `total`; works on arrays too.

    The server may count one more token, the end of text, which no chunk carries. A larger difference means that some
    chunks carried several tokens, and nothing shows which ones.
    """
    return (total - counted <= 1) | (total - counted <= TEXTLESS_FRACTION * total)
