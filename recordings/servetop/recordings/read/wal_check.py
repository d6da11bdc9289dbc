"""Finds commits that SQLite drops silently: those in a write-ahead log after a torn or altered one.

The layout is documented at sqlite.org/fileformat2.html, section 4: a header of 32 bytes, then frames of 24 bytes and a
page. A frame is valid if its salts equal the header's and its checksum, which continues that of the previous frame,
matches.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.core.arrays import np

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class WalState:
    """The contents of a write-ahead log."""

    commits: int
    """Transactions that SQLite reads."""
    dropped: int
    """Recognisable transactions after the damage; 0 if that is the newest one, which a kill -9 may have interrupted.

    Its frames are written over those of an older log, each head before its page, so the last one may look complete.
    """
    damage: str | None = None
    """Why they are dropped; None for a sound log, which may end within a transaction after a kill -9."""


_HEADER, _FRAME = 32, 24
_MAGIC = (0x377F0682, 0x377F0683)
_MAX_CHECKED_BYTES = 256 << 20
"""Logs larger than this are not checked; usually a log has a thousand pages."""
_FRAMES_AT_ONCE = 1000
_LOW = 0xFFFFFFFF


def check_wal(database: Path) -> WalState:
    """Check the log beside a database; a missing or empty one is sound. OSError if it cannot be read."""
    log = database.with_name(f"{database.name}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size <= _HEADER or size > _MAX_CHECKED_BYTES:
        return WalState(commits=0, dropped=0)
    return _checked(log.read_bytes())


def _checked(data: bytes) -> WalState:
    magic, _, page, _, salt_1, salt_2, sum_1, sum_2 = struct.unpack(">8I", data[:_HEADER])
    order = ">u4" if magic & 1 else "<u4"
    sound = magic in _MAGIC and page >= 512 and page & (page - 1) == 0
    if not sound or _checksums(data[: _HEADER - 8], _HEADER - 8, order=order, before=(0, 0)) != [(sum_1, sum_2)]:
        return WalState(commits=0, dropped=0, damage="the header of its write-ahead log is damaged")
    count = (len(data) - _HEADER) // (_FRAME + page)
    frames = np.frombuffer(data, np.uint8, count * (_FRAME + page), _HEADER).reshape(count, _FRAME + page)
    heads = np.frombuffer(frames[:, :_FRAME].tobytes(), ">u4").reshape(count, 6)
    own = (heads[:, 2] == salt_1) & (heads[:, 3] == salt_2)
    running = [(sum_1, sum_2)]
    for start in range(0, count, _FRAMES_AT_ONCE):
        part = frames[start : start + _FRAMES_AT_ONCE]
        covered = np.concatenate([part[:, :8], part[:, _FRAME:]], axis=1).tobytes()
        running += _checksums(covered, 8 + page, order=order, before=running[-1])
    sums = np.array(running[1:], np.uint64).reshape(count, 2)
    matching = own & (sums == heads[:, 4:]).all(axis=1)
    valid = count if matching.all() else int(matching.argmin())
    commits = heads[:, 1] > 0
    last = int(np.flatnonzero(commits[:valid])[-1]) + 1 if commits[:valid].any() else 0
    lost = last + np.flatnonzero((own & commits)[last:])
    dropped = 0 if lost.size == 1 and lost[0] == np.flatnonzero(own)[-1] else lost.size
    damage = f"its write-ahead log is torn: at least {dropped} later commits were dropped" if dropped else None
    return WalState(commits=int(commits[:last].sum()), dropped=dropped, damage=damage)


def _checksums(data: bytes, width: int, *, order: str, before: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the running checksum after each piece of `width` bytes.

    One step is s0 += x + s1, s1 += y + s0. A piece therefore adds a sum of its integers weighted by Fibonacci numbers,
    which is computed for all pieces at once, and multiplies the previous checksum by a power of a constant matrix.
    """
    words: npt.NDArray[np.uint64] = np.frombuffer(data, order).astype(np.uint64).reshape(-1, width // 4)
    steps = width // 8
    fibonacci = _fibonacci(2 * steps + 2)
    left = np.arange(steps, 0, -1)
    x, y = words[:, ::2], words[:, 1::2]

    def weighted(of_x: npt.NDArray[np.uint64], of_y: npt.NDArray[np.uint64]) -> list[int]:
        total = ((x * of_x) & _LOW).sum(axis=1) + ((y * of_y) & _LOW).sum(axis=1)
        return [int(each) & 0xFFFFFFFF for each in total]

    added_0 = weighted(fibonacci[2 * left - 1], fibonacci[2 * left - 2])
    added_1 = weighted(fibonacci[2 * left], fibonacci[2 * left - 1])
    f, g, h = (int(fibonacci[2 * steps + each]) for each in (-1, 0, 1))
    s0, s1 = before
    sums = []
    for first, second in zip(added_0, added_1, strict=True):
        s0, s1 = (f * s0 + g * s1 + first) & 0xFFFFFFFF, (g * s0 + h * s1 + second) & 0xFFFFFFFF
        sums.append((s0, s1))
    return sums


def _fibonacci(count: int) -> npt.NDArray[np.uint64]:
    numbers = [0, 1]
    while len(numbers) < count:
        numbers.append((numbers[-1] + numbers[-2]) & 0xFFFFFFFF)
    return np.array(numbers, np.uint64)
