"""A scratch store for older data: byte strings that are appended and read back."""

from __future__ import annotations

from array import array


class Scratch:
    """A scratch store in memory; a subclass may keep the pieces in a file."""

    def __init__(self) -> None:
        self._end = 0
        self._pieces: dict[int, bytes] = {}

    def add(self, piece: bytes) -> int:
        """Append a piece; return its offset."""
        at, self._end = self._end, self._end + len(piece)
        self._pieces[at] = piece
        return at

    def read(self, at: int, size: int) -> bytes:  # noqa: ARG002
        """Return the piece of `size` bytes at an offset."""
        return self._pieces[at]


class Pieces:
    """A sequence of pieces in a shared scratch store."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._offsets, self._sizes = array("q"), array("l")

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, piece: bytes) -> None:
        """Append the next piece."""
        self._offsets.append(self._scratch.add(piece) if piece else 0)
        self._sizes.append(len(piece))

    def __getitem__(self, number: int) -> bytes:
        size = self._sizes[number]
        return self._scratch.read(self._offsets[number], size) if size else b""
