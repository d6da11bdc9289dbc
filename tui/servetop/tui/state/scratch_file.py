"""A scratch in an unnamed temporary file, which disappears with the process."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import IO

from servetop.analysis.series.scratch import Scratch


class ScratchFile(Scratch):
    """Pieces that cannot be written, as on a full disk, stay in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._file: IO[bytes] | None = None

    def add(self, piece: bytes) -> int:
        """Store a piece; returns its offset."""
        offset = super().add(piece)
        if self._wrote(piece, offset):
            del self._pieces[offset]
        return offset

    def _wrote(self, piece: bytes, offset: int) -> bool:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="servetop-", buffering=0)  # noqa: SIM115
                weakref.finalize(self, self._file.close)  # not __del__: in a cycle the file might be collected first
            return os.pwrite(self._file.fileno(), piece, offset) == len(piece)
        except OSError:
            return False

    def read(self, at: int, size: int) -> bytes:
        """Return the piece of `size` bytes at an offset."""
        if at in self._pieces or self._file is None:
            return super().read(at, size)
        return os.pread(self._file.fileno(), size, at)
