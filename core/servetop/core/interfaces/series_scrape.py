"""A scrape of the series that are not fields of EngineSample: names as the engine spells them, and numbers."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

MAX_SERIES = 4096
"""Maximum series of one scrape; vLLM 0.32 has about 400."""
_BYTES = 8
_LEAST_WINDOW_BITS, _MEMORY_LEVEL = 10, 6
"""zlib's buffers as large as the numbers, not 256 KiB: half the time for the same size, as clearing them takes most."""

PROCESS_START = "process_start_time_seconds"
"""When the server process started, in seconds since 1970: a series of most Prometheus clients, of any engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesScrape:
    """The values of an engine's further series at one instant, packed as they are recorded."""

    at: float
    """End of the scrape, seconds since the run's origin."""
    names: str | None = None
    """Names with their labels, one per line; None: those of the scrape before."""
    numbers: bytes
    """The values in the order of the names, see `pack_numbers`."""
    replica: int | None = None
    """Which of several watched servers it is of; None: of the only one, or the names have a label of it."""

    @property
    def name_list(self) -> tuple[str, ...]:
        """The names; empty if they are those of the scrape before."""
        return tuple(self.names.split("\n")[:MAX_SERIES]) if self.names else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedScrape(SeriesScrape):
    """The last of several scrapes, which stands for all of them."""

    count: int
    """How many they are, including itself."""


def pack_numbers(values: Iterable[float]) -> bytes:
    """Return little-endian float64 values, compressed by zlib."""
    numbers = tuple(values)
    unpacked = struct.pack(f"<{len(numbers)}d", *numbers)
    window = min(max(len(unpacked).bit_length(), _LEAST_WINDOW_BITS), zlib.MAX_WBITS)
    packer = zlib.compressobj(wbits=window, memLevel=_MEMORY_LEVEL)
    return packer.compress(unpacked) + packer.flush()


def unpack_numbers(packed: bytes, *, count: int) -> bytes | None:
    """Return `count` little-endian float64 values; None if the bytes are damaged or of another number of values."""
    numbers = _unpacked(packed, count)
    return numbers if numbers is not None and len(numbers) == count * _BYTES else None


def _unpacked(packed: bytes, most: int) -> bytes | None:
    """Return the bytes of up to `most` numbers; None if there are more, or the bytes are damaged."""
    try:
        numbers = zlib.decompressobj().decompress(packed, most * _BYTES + 1)
    except zlib.error:
        return None
    return numbers if len(numbers) <= most * _BYTES else None
