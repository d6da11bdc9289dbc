"""Where figures of the past are put so that they need no memory: pieces of bytes, added at an end and read again."""

from __future__ import annotations

from array import array


class Scratch:
    """In memory; a subclass keeps the pieces elsewhere."""

    def __init__(self) -> None:
        self._end = 0
        self._pieces: dict[int, bytes] = {}

    def add(self, piece: bytes) -> int:
        """Keep a piece; the place to read it from."""
        at, self._end = self._end, self._end + len(piece)
        self._pieces[at] = piece
        return at

    def read(self, at: int, size: int) -> bytes:  # noqa: ARG002
        """The piece of `size` bytes that was put at this place."""
        return self._pieces[at]


class Pieces:
    """Pieces by number, in a scratch that others use too."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._places, self._sizes = array("q"), array("l")

    def __len__(self) -> int:
        return len(self._places)

    def append(self, piece: bytes) -> None:
        """Keep the next piece."""
        self._places.append(self._scratch.add(piece) if piece else 0)
        self._sizes.append(len(piece))

    def __getitem__(self, number: int) -> bytes:
        size = self._sizes[number]
        return self._scratch.read(self._places[number], size) if size else b""
